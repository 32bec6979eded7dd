"""How people word a claim about their own life: "my X", "i have X", "i was", "when i", "it happened to me".

A small grammar over words, not a model; its word lists are in lexicon.toml.
"""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.words import word_set

RELATIVE, PET, POSSESSION, PAST = "relative", "pet", "possession", "past"
EXPERIENCE, STATE, HABIT = "experience", "state", "habit"
_LEXICON = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text(encoding="utf-8"))
SAME = tuple(map(word_set, _LEXICON.pop("same")))
"""Groups of words that speak of the same part of a life."""
WORDS = {name: word_set(text) for name, text in _LEXICON.items()}
"""The other word lists by name."""
WORDS["participles"] |= WORDS["past"]


@dataclass(frozen=True)
class Span:
    """A claim by the numbers of its words."""

    kind: str
    """RELATIVE, PET, POSSESSION, PAST, EXPERIENCE, STATE or HABIT."""
    first: int
    end: int
    about: int | None = None
    """The word it is about, where one is; otherwise its whole clause is."""


def find_claims(words: Sequence[str]) -> Iterator[Span]:
    """Every claim in a reply's words, in lower case, contractions written out."""
    sentence = _Sentence(words)
    for at, word in enumerate(words):
        if word in _RULES and (span := _RULES[word](sentence, at)):
            yield span


class _Sentence:
    """Words that can be asked beyond their ends; punctuation and the ends part clauses."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def __getitem__(self, at: int) -> str:
        return self._words[at] if 0 <= at < len(self._words) else ""

    def ends(self, at: int) -> bool:
        """Whether no word stands here."""
        return not self[at][:1].isalnum()

    def after(self, at: int, skipped: frozenset[str]) -> int:
        """The first word from here on that is none of these."""
        while self[at] in skipped and not self.ends(at):
            at += 1
        return at

    def next(self, at: int, count: int) -> list[str]:
        """Up to so many words of the clause, from here on."""
        following = list[str]()
        while len(following) < count and not self.ends(at + len(following)):
            following.append(self[at + len(following)])
        return following

    def before(self, at: int) -> list[str]:
        """The words of the clause before this one."""
        first = at
        while not self.ends(first - 1) and self[first] not in WORDS["breaks"]:
            first -= 1
        return [self[index] for index in range(first, at)]


def _my(words: _Sentence, at: int) -> Span | None:
    """my wife, my old dog, my car; not my goodness, nor my friend as a form of address."""
    head = at + 1
    while (words[head] in WORDS["qualities"] or words[head].isdigit()) and not words.ends(head + 1):
        head += 1
    if words[head] in ("is", "was") and head > at + 1:  # my first is on the way
        head -= 1
    noun, before = words[head].removesuffix("'s"), words.before(at)
    if words.ends(head) or noun in WORDS["no_possession"] or before[-2:-1] == ["if"]:
        return None
    if before[-1:] in (["were"], ["be"]) or (noun in WORDS["addressed"] and _addresses(words, at, head)):
        return None
    if noun == "experience":
        return Span(EXPERIENCE, at, head + 1)
    kind = RELATIVE if noun in WORDS["relatives"] else PET if noun in WORDS["pets"] else POSSESSION
    return Span(kind, at, head + 1, head)


def _addresses(words: _Sentence, at: int, head: int) -> bool:
    """Whether "my friend" is said to the other person: it ends a clause and nothing governs it."""
    return words.ends(head + 1) and words[at - 1] not in WORDS["governing"]


def _our(words: _Sentence, at: int) -> Span | None:
    span = _my(words, at)
    about = words[span.about] if span and span.about else ""
    return span if about in WORDS["relatives"] | WORDS["pets"] | WORDS["home"] else None


def _mine(words: _Sentence, at: int) -> Span | None:
    """mine is ten, a friend of mine; not a gold mine."""
    return None if words[at - 1] in WORDS["no_mine"] else Span(POSSESSION, max(0, at - 1), at + 1)


def _i(words: _Sentence, at: int) -> Span | None:
    before = words.before(at)
    if before[-1:] and before[-1] in WORDS["asking"]:  # did i; but "so did i" tells the same of oneself
        told = before[-2:-1] in (["so"], ["neither"], ["as"]) and before[-1] in ("did", "have")
        return Span(EXPERIENCE, at - 2, at + 1) if told else None
    if WORDS["hypothetical"] & set(before):
        return None
    verb = words.after(at + 1, WORDS["adverbs"])
    if words[verb] in _VERBS:
        return _VERBS[words[verb]](words, at, verb)
    return _other_verb(words, at, verb)


def _other_verb(words: _Sentence, at: int, verb: int) -> Span | None:
    """i lost my way, i live here, i always forget; not i told you, i always liked those."""
    usually = WORDS["usually"] & set(words.next(at + 1, verb - at - 1))
    tastes = usually and (words.ends(verb) or words[verb] in WORDS["thinking"] | WORDS["opinion"])
    if tastes or words[verb + 1] in ("you", "your"):  # what is done to "you" is of this talk
        return None
    if _is_past(words[verb]):
        return Span(PAST, at, verb + 1)
    return Span(HABIT, at, verb + 1) if usually or words[verb] in WORDS["habits"] else None


def _is_past(word: str) -> bool:
    return word not in WORDS["thinking"] and (
        word in WORDS["past"] or (word.endswith("ed") and len(word) > 4)
    )


def _have(words: _Sentence, at: int, verb: int) -> Span | None:
    """i have two kids, i have been there; not i have heard, no idea, to say."""
    rest = words.after(verb + 1, WORDS["adverbs"])
    word, denied = words[rest], "not" in words.next(verb + 1, rest - verb - 1)
    if words.ends(rest) or word in ("too", "either"):
        answers = denied or word in ("too", "either") or words[at - 1] in ("yes", "yeah", "yep")
        return Span(EXPERIENCE, at, rest + (word in ("too", "either"))) if answers else None
    if word == "to":
        busy = words[rest + 1] in WORDS["duties"] and words[rest + 2] != "sure"
        return Span(HABIT, at, rest + 2) if busy else None
    return _thing_had(words, at, rest)


def _thing_had(words: _Sentence, at: int, rest: int) -> Span | None:
    """What stands after "i have": a thing, or something done."""
    word, clause = words[rest], words.next(rest + 1, 4)
    if word in WORDS["thought"] or clause[:1] in (["you"], ["your"]):
        return None
    if word != "got" and (word in WORDS["participles"] or (word.endswith("ed") and len(word) > 4)):
        saying = word == "been" and clause and clause[0] in WORDS["been_saying"]
        return None if saying else Span(EXPERIENCE, at, rest + 1)
    no_matter = word == "no" and clause[:1] in (["problem"], ["problems"], ["choice"], ["love"])
    must = word == "got" and clause[:1] in (["to"], ["ta"])
    if no_matter or must or WORDS["nothing_had"] & {word, *clause} or word in ("your", "all"):
        return None
    return Span(POSSESSION, at, rest + 1)


def _had(words: _Sentence, at: int, verb: int) -> Span | None:
    """i had a similar thing; not i had no idea, i had to laugh."""
    rest = words.after(verb + 1, WORDS["adverbs"])
    clause = words.next(rest, 4)
    nothing = WORDS["nothing_had"] & set(clause) or words[rest] in WORDS["thinking"] or words.ends(rest)
    if nothing or (words[rest] == "to" and words[rest + 1] in WORDS["reactions"]):
        return None
    return Span(EXPERIENCE, at, rest + 1)


def _was(words: _Sentence, at: int, verb: int) -> Span | None:
    """i was bullied, when i was young; not i was just wondering, i was so happy to hear it."""
    rest = words.after(verb + 1, WORDS["adverbs"] | {"so", "very", "too"})
    clause = words.next(rest, 5)
    told = bool({"hear", "you", "your", "read", "reading"} & set(clause))
    if words.ends(rest) or words[rest] in WORDS["saying"] or told:
        return None
    if words[rest] in ("going", "about") and words[rest + 1] == "to":
        return None
    first = at - 1 if words[at - 1] == "when" else at
    return Span(PAST, first, rest + 1)


def _did(words: _Sentence, at: int, verb: int) -> Span | None:
    """i did that once, i did not sleep; not i did not know."""
    if words[verb + 1] == "not":
        done = words.after(verb + 2, WORDS["adverbs"])
        told = words.ends(done) or words[done] in WORDS["opinion"] or words[done + 1] in ("you", "your")
        return None if told else Span(PAST, at, done + 1)
    if words.next(at - 2, 1) == ["is"] and words[at - 1] == "what":  # that is what i did
        return Span(EXPERIENCE, at - 1, verb + 1)
    done = words[verb + 1] in ("that", "it", "too", "the", "this", "something", "once", "a", "my", "as")
    return Span(EXPERIENCE, at, verb + 2) if done and words[verb + 2] != "hear" else None


def _do(words: _Sentence, at: int, verb: int) -> Span | None:
    """i do that too, i do not have kids; not i do not know."""
    rest = words.after(verb + 1, WORDS["adverbs"])
    if words[rest] == "have":
        return _have(words, at, rest)
    if words[rest] in WORDS["habits"]:
        return Span(HABIT, at, rest + 1)
    same = words[rest] in ("that", "it", "this") or words.next(rest, 2) == ["the", "same"]
    return Span(HABIT, at, rest + 1) if same and rest == verb + 1 else None


def _used(words: _Sentence, at: int, verb: int) -> Span | None:
    return Span(PAST, at, verb + 2) if words[verb + 1] == "to" else Span(PAST, at, verb + 1)


def _remember(words: _Sentence, at: int, verb: int) -> Span | None:
    told = {"you", "your", "hearing", "reading", "not"} & set(words.next(at + 1, verb - at + 2))
    return None if told or words.ends(verb + 1) else Span(PAST, at, verb + 1)


def _get(words: _Sentence, at: int, verb: int) -> Span | None:
    """i get nervous too; not i get it."""
    rest = words[verb + 1]
    understood = rest in WORDS["understood"] or (
        rest == "that" and words[verb + 2] not in ("way", "too", "feeling")
    )
    to_come = rest in ("married", "to")
    return None if understood or to_come or words.ends(verb + 1) else Span(HABIT, at, verb + 2)


def _miss(words: _Sentence, at: int, verb: int) -> Span | None:
    missed = words[verb + 1] in ("having", "being", "those", "the", "her", "him", "them", "going", "living")
    return Span(EXPERIENCE, at, verb + 2) if missed else None


def _know(words: _Sentence, at: int, verb: int) -> Span | None:
    """i know someone who; not i know how you feel."""
    who = words.after(verb + 1, frozenset({"a", "an", "of", "quite"}))
    known = words[who] in WORDS["someone"] and words[verb + 1] != "of"
    return Span(RELATIVE, at, who + 1) if known else None


def _am(words: _Sentence, at: int, verb: int) -> Span | None:
    """i am a nurse, i am from texas; not i am sorry."""
    rest = words.after(verb + 1, WORDS["adverbs"] | {"so", "very", "too", "currently"})
    word, following = words[rest], words.next(rest + 1, 3)
    if word in ("a", "an"):
        harmless = not following or bool(WORDS["no_trade"] & set(following))
    elif word == "in":
        harmless = not following or following[0] in WORDS["moods"]
    elif word == "the":
        harmless = following[:1] not in (["same"], ["oldest"], ["youngest"], ["only"], ["middle"])
    elif word == "from":
        harmless = following[:1] == ["what"]
    elif word == "going":
        harmless = following[:1] not in (["through"], ["on"], ["back"], ["there"], ["away"], ["camping"])
    elif word in ("on", "at"):
        harmless = not {"diet", "vacation", "work", "home", "medication"} & set(following)
    elif word == "having":
        harmless = bool({"hard", "trouble", "difficulty"} & set(following))
    elif word in ("like", "used"):
        harmless = following[:1] not in (["that"], ["to"])
    else:
        aged = word.isdigit() and (not following or following[0] in ("years", "year", "and", "now"))
        harmless = not (aged or word in WORDS["states"] | WORDS["living"]) or "you" in following[:1]
    return None if harmless else Span(STATE, at, rest + 1 + bool(following))


def _we(words: _Sentence, at: int) -> Span | None:
    """we had a dog; not we all have our days, nor if we."""
    before = set(words.before(at))
    verb = words.after(at + 1, WORDS["adverbs"])
    word, following = words[verb], words.next(verb + 1, 2)
    if WORDS["hypothetical"] & before or "you" in before or "all" in following[:1]:
        return None
    if word == "have":
        had = following[:1] and (
            following[0] in WORDS["counted"]
            or following[0] in WORDS["relatives"] | WORDS["pets"] | {"been", "had"}
        )
        return Span(POSSESSION, at, verb + 2) if had else None
    past = _is_past(word) or (word in ("had", "were") and following[:1] not in (["talking"], ["you"]))
    if past or word == "live" or (word == "used" and following[:1] == ["to"]):
        return Span(PAST, at, verb + 1)
    return (
        Span(STATE, at, verb + 2)
        if word == "are" and following[:1] and following[0] in WORDS["living"]
        else None
    )


def _me(words: _Sentence, at: int) -> Span | None:
    """it happened to me, it took me years, she told me."""
    before = words[at - 1]
    if before == "to" and words[at - 2] in ("happened", "happens", "happening", "happen"):
        if WORDS["hypothetical"] & set(words.before(at)):
            return None
        return Span(EXPERIENCE, at - 2, at + 1)
    if before == "for" and words[at - 2] == "worked":
        return Span(EXPERIENCE, at - 2, at + 1)
    if before == "took" and words.ends(at + 1) is False and words[at + 1] not in ("by", "back", "to"):
        return Span(EXPERIENCE, at - 1, at + 1)
    would = {"would", "could"} & set(words.before(at))
    return Span(EXPERIENCE, at - 1, at + 1) if before in WORDS["done_to_one"] and not would else None


def _alone(words: _Sentence, at: int) -> Span | None:
    """A sentence without its "i": been there, had that happen, used to live there."""
    if not words.ends(at - 1):
        return None
    told = {
        "been": words[at + 1] in ("there", "through"),
        "had": words[at + 1] in ("that", "the", "a", "to", "my", "it"),
        "used": words[at + 1] == "to",
    }[words[at]]
    return Span(EXPERIENCE, at, at + 2) if told else None


_VERBS: dict[str, Callable[[_Sentence, int, int], Span | None]] = {
    "have": _have,
    "had": _had,
    "was": _was,
    "did": _did,
    "do": _do,
    "used": _used,
    "remember": _remember,
    "get": _get,
    "miss": _miss,
    "know": _know,
    "am": _am,
}
_RULES: dict[str, Callable[[_Sentence, int], Span | None]] = {
    "my": _my,
    "our": _our,
    "mine": _mine,
    "i": _i,
    "we": _we,
    "me": _me,
    "been": _alone,
    "had": _alone,
    "used": _alone,
}
