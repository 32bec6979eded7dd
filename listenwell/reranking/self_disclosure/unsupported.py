"""Invented life: what a reply tells of the listener's own life that its persona does not hold.

"My wife", "when i was in college", "the same happened to me": nobody lived that. Claims are found by the way
people word them, which is quick and can be shown. Feelings, tastes, opinions and wishes ("i would love to",
"i hate spiders", "i can relate") are no life.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from listenwell.errors import InputError
from listenwell.metrics.checks import check_some
from listenwell.reranking.self_disclosure.first_person import Found, found_in
from listenwell.reranking.self_disclosure.lexicon import EMPTY, PARENTS, SAME
from listenwell.reranking.self_disclosure.spans import Word, placed


@dataclass(frozen=True)
class Claim:
    """Something a reply tells of the listener's life."""

    kind: str
    """One of `first_person.KINDS`."""
    text: str
    """The words that tell it."""
    start: int
    """Where they begin in the reply."""
    end: int
    about: tuple[str, ...]
    """What it is about: the word after "my", or the words of its clause that say something."""


def claims(reply: str) -> tuple[Claim, ...]:
    """Every claim about the listener's own life, in order; of two that overlap the first."""
    given = placed(reply)
    kept = list[Claim]()
    for one in sorted(found_in([word.text for word in given]), key=lambda one: (one.first, one.end)):
        start, end = given[one.first].start, given[one.end - 1].end
        if not kept or start >= kept[-1].end:
            kept.append(Claim(one.kind, reply[start:end], start, end, _about(one, given)))
    return tuple(kept)


def unsupported_disclosure(reply: str, persona: Iterable[str] = ()) -> tuple[Claim, ...]:
    """The claims that no line of the persona supports: one that speaks of the same thing.

    Args:
        reply: what the listener would say.
        persona: the lines of the listener's own persona.
    """
    found = claims(reply)
    held = {root for line in persona for word in _told(line) for root in _roots(word)} if found else set()
    return tuple(claim for claim in found if not any(held & _roots(word) for word in claim.about))


def invented_rate(replies: Sequence[str], personas: Sequence[Sequence[str]] | None = None) -> float:
    """The share of replies, in percent, with at least one invented claim.

    Args:
        replies: of any system.
        personas: for each reply the lines of its speaker's persona; none without.
    """
    check_some(replies, "replies")
    held = personas if personas is not None else [()] * len(replies)
    if len(held) != len(replies):
        raise InputError(f"{len(replies)} replies and {len(held)} personas.", "Give one for each reply.")
    return (
        100
        * sum(bool(unsupported_disclosure(*pair)) for pair in zip(replies, held, strict=True))
        / len(replies)
    )


def _about(one: Found, given: Sequence[Word]) -> tuple[str, ...]:
    if one.about is not None:
        return (given[one.about].text,)
    clause = list[str]()
    for word in given[one.first :]:
        if not word.text[0].isalnum():
            break
        clause.append(word.text)
    return tuple(dict.fromkeys(word for word in clause if word not in EMPTY))


def _told(line: str) -> list[str]:
    """The words of a persona line; who is a parent has a child, who has a parent need not."""
    said = [word.text for word in placed(line)]
    kin = said[said.index("am") + 1 :][:4] if "am" in said else []
    return [*said, "child"] if PARENTS & set(kin) else said


def _roots(word: str) -> set[str]:
    """A word without its ending, and those that speak of the same part of a life."""
    if word in EMPTY:
        return set()
    root = plain = word.removesuffix("'s")
    for ending, instead in (("ies", "y"), ("ses", "s"), ("ing", ""), ("ied", "y"), ("ed", ""), ("s", "")):
        if root.endswith(ending) and len(root) - len(ending) >= 3 and not root.endswith("ss"):
            root = root.removesuffix(ending) + instead
            break
    root = {"children": "child", "wive": "wife"}.get(root, root)
    return {root}.union(*(group for group in SAME if root in group or plain in group))
