"""Unsupported self-disclosure: claims about the listener's own life that its persona does not hold.

"My wife", "when i was in college", "the same happened to me": a model has lived none of that. Claims are
found by a grammar of first-person phrases, so each can be shown. Feelings, tastes, opinions and wishes ("i
would love to", "i hate spiders", "i can relate") are not claims.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from listenwell.errors import InputError
from listenwell.metrics.checks import check_some
from listenwell.reranking.self_disclosure.first_person import SAME, WORDS, Span, find_claims
from listenwell.words import expanded, words


@dataclass(frozen=True, slots=True)
class Word:
    """A word in lower case and its span in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Claim:
    """Something a reply tells of the listener's life."""

    kind: str
    """As in `first_person.Span`."""
    text: str
    """The words that tell it."""
    start: int
    """Where they begin in the reply."""
    end: int
    about: tuple[str, ...]
    """What it is about: the word after "my", or the words of its clause that say something."""


def claims(reply: str) -> tuple[Claim, ...]:
    """Every claim about the listener's own life, in order; of two that overlap the first."""
    reply_words = words_with_spans(reply)
    kept = list[Claim]()
    spans = find_claims([word.text for word in reply_words])
    for span in sorted(spans, key=lambda span: (span.first, span.end)):
        start, end = reply_words[span.first].start, reply_words[span.end - 1].end
        if not kept or start >= kept[-1].end:
            kept.append(Claim(span.kind, reply[start:end], start, end, _about(span, reply_words)))
    return tuple(kept)


def unsupported_disclosure(reply: str, persona: Iterable[str] = ()) -> tuple[Claim, ...]:
    """The claims of which no line of the listener's persona speaks."""
    stated = claims(reply)
    if not stated:
        return ()
    held = {root for line in persona for word in _persona_words(line) for root in _roots(word)}
    return tuple(claim for claim in stated if not any(held & _roots(word) for word in claim.about))


def unsupported_disclosure_rate(
    replies: Sequence[str], personas: Sequence[Sequence[str]] | None = None
) -> float:
    """The share of replies, in percent, with at least one claim that their own persona does not support."""
    check_some(replies, "replies")
    held = personas if personas is not None else [()] * len(replies)
    if len(held) != len(replies):
        raise InputError(f"{len(replies)} replies and {len(held)} personas.", "Give one for each reply.")
    count = sum(bool(unsupported_disclosure(*pair)) for pair in zip(replies, held, strict=True))
    return 100 * count / len(replies)


def _about(span: Span, reply_words: Sequence[Word]) -> tuple[str, ...]:
    if span.about is not None:
        return (reply_words[span.about].text,)
    clause = list[str]()
    for word in reply_words[span.first :]:
        if not word.text[0].isalnum():
            break
        clause.append(word.text)
    return tuple(dict.fromkeys(word for word in clause if word not in WORDS["empty"]))


def _persona_words(line: str) -> list[str]:
    """The words of a persona line; who is a parent has a child, who has a parent need not."""
    line_words = [word.text for word in words_with_spans(line)]
    kin = line_words[line_words.index("am") + 1 :][:4] if "am" in line_words else []
    return [*line_words, "child"] if WORDS["parents"] & set(kin) else line_words


def _roots(word: str) -> set[str]:
    """A word without its ending, and those that speak of the same part of a life."""
    if word in WORDS["empty"]:
        return set()
    root = plain = word.removesuffix("'s")
    for ending, instead in (("ies", "y"), ("ses", "s"), ("ing", ""), ("ied", "y"), ("ed", ""), ("s", "")):
        if root.endswith(ending) and len(root) - len(ending) >= 3 and not root.endswith("ss"):
            root = root.removesuffix(ending) + instead
            break
    root = {"children": "child", "wive": "wife"}.get(root, root)
    return {root}.union(*(group for group in SAME if root in group or plain in group))


def words_with_spans(text: str) -> list[Word]:
    """The words of a text with their spans; the two words of a contraction share one."""
    letters, result, used = _letters(text), list[Word](), 0
    for token in words(text):
        spans = letters[used : used + len(token)] or letters[-1:]
        used += len(token)
        result += [Word(part, spans[0][0], spans[-1][1]) for part in _parts(token)]
    return result


_LOOSE = {
    f"{verb}nt": f"{verb} not" for verb in ["do", "did", "does", "was", "were", "have", "could", "would"]
}
_LOOSE |= {"cant": "can not", "weve": "we have"}
"""Contractions that people write without the apostrophe, beside those of `words.expanded`."""


def _parts(token: str) -> list[str]:
    return (_LOOSE.get(token) or expanded(token)).split()


def _letters(text: str) -> list[tuple[int, int]]:
    """The span of each character of a text's words: white space has none, a few letters become two in lower
    case, and an accent belongs to the letter before it."""
    spans, start = list[tuple[int, int]](), 0
    for end in range(1, len(text) + 1):
        if end < len(text) and unicodedata.combining(text[end]):
            continue
        letter = unicodedata.normalize("NFC", text[start:end].lower())
        spans += [(start, end)] * (0 if letter.isspace() else len(letter))
        start = end
    return spans
