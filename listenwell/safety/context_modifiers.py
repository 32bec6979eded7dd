"""Context that changes the meaning of a match: negation, past, jokes, songs, figures of speech."""

import re

from listenwell.labels import RISK_LEVELS
from listenwell.safety.patterns.base import (
    ABUSE,
    EMERGENCY,
    FOLDER,
    HARM_TO_OTHERS,
    SELF_HARM,
    SOMEONE_ELSE,
    SUICIDE,
    Pattern,
    read,
)
from listenwell.words import word_set

NONE, CONCERN, CRISIS = LEVELS = RISK_LEVELS.labels
"""The severity levels: nothing, something to keep in mind, something to answer now."""
_SECTIONS = word_set(
    "past overcome current present told story said laugh earnest figurative accident annoyance condition "
    "last_straw bereaved"
)
_CONTEXT = dict(read((FOLDER / "context.txt").read_text("utf-8"), _SECTIONS, "context.txt"))
_MYSELF_SAID = re.compile(r" i (?:said|told|wrote)(?= )")
_WANTING = re.compile(r" i (?:\S+ ){0,3}?(?:want|wish|am going|will)(?= )")
NEGATIONS = word_set("not never no nor neither deny denied")
NO_DENIAL = word_set(
    "know sure stop help care only understand see mind one longer reason point joking kidding"
)
"""After a negation these deny nothing of what follows: "I do not know if I should"."""
OPENERS = word_set("if why but because until unless than then , how what when so and")
"""Between a negation and a phrase: here something else begins."""
_SPELT = re.compile(r"\b(?:not|never|no)\b")
"""In a pattern that spells a negation, it is part of the phrase."""
DENIED = re.compile(
    r" (?:(?:would|will|could|can|have|i) never|never (?:would|will|even|ever)?|(?:am|was|is|are|be|"
    r"been) not|(?:do|did) not (?:\S+ )?(?:want|plan|intend|feel|think|wish|have)|(?:will|would) not|"
    r"no (?:\S+ )?(?:thoughts?|plans?|intentions?|desire|urges?|wish|longer)|neither|nor|deny|denied|"
    r"said no to)(?: (?:any|going|planning|trying|thinking|considering|having|feeling|being|want|to|of|"
    r"about|like|actually|really|actively|even|at all|thoughts|thought|plans|a|currently|self)){0,5} $"
)
"""Before a phrase about oneself: only a plain denial is one. "I can not even kill myself" is none."""
REACH = 5
"""Words before a phrase in which a negation denies it."""
THIRD = word_set(
    "he she they who someone somebody guy girl man woman boy person husband wife boyfriend girlfriend "
    "partner ex father mother brother sister cousin uncle aunt son daughter kid child teacher friend "
    "roommate neighbour neighbor coworker colleague classmate student niece nephew grandpa grandma everyone "
    "people"
)
FIRST = word_set("i me my myself")
ASKED = re.compile(
    r" (?:asked|asks|asking|wondered) (?:me )?(?:if|whether) i (?:was|am|were|felt|had|wanted)"
)
GONE_BY = word_set("was were had used tried wanted did thought")
UNREAL = word_set("almost nearly would could might")
"""In what somebody did to one: it was not done, or in a game."""
CALLED = re.compile(r" (?:called|named|titled|entitled|name of|title) (?:\S+ ){0,2}$")


def in_context(
    pattern: Pattern, text: str, start: int, end: int, sentence: tuple[int, int]
) -> tuple[str, str]:
    """The kind and the level of a match, given its context.

    Args:
        pattern: that matched.
        text: the whole message, normalized.
        start: of the match.
        end: of the match.
        sentence: the span of the sentence around it.
    """
    phrase, around = f"{text[start:end]} ", f"{text[sentence[0] : sentence[1]]} "
    before = text[sentence[0] : start + 1]
    own = pattern.kind in (SUICIDE, SELF_HARM)
    quoted = bool(text.count('"', 0, start) % 2)
    if CALLED.search(before) or (quoted and _CONTEXT["story"].search(around)):
        return pattern.kind, NONE
    if own and quoted and _CONTEXT["said"].search(text[:start]) and not _MYSELF_SAID.search(text[:start]):
        return SOMEONE_ELSE, CRISIS
    if _only_told(pattern, phrase, before, around) or _is_figurative(pattern, phrase, around):
        return pattern.kind, NONE
    kind = SOMEONE_ELSE if own and _of_another(phrase, before) else pattern.kind
    soft = (
        _negated(pattern, before, phrase)
        or ASKED.search(before)
        or _not_meant(pattern, text, around)
        or _not_now(pattern, phrase, before)
        or (_CONTEXT["bereaved"].search(around) and not _WANTING.search(around))
        or (not _of_today(phrase, before) and softened(text, *sentence))
    )
    return kind, CONCERN if soft else CRISIS


def _not_meant(pattern: Pattern, text: str, around: str) -> bool:
    """A threat with a laugh, or one that hangs on something small."""
    if pattern.kind not in (SUICIDE, SELF_HARM, HARM_TO_OTHERS):
        return False
    laughed = _CONTEXT["laugh"].search(around) and not _CONTEXT["earnest"].search(text)
    return bool(
        laughed or _CONTEXT["condition" if pattern.kind == HARM_TO_OTHERS else "last_straw"].search(around)
    )


def _not_now(pattern: Pattern, phrase: str, before: str) -> bool:
    """An emergency that is over or was none, a blow that was not struck."""
    if pattern.kind == EMERGENCY:
        return bool(_CONTEXT["told"].search(before))
    return pattern.kind == ABUSE and bool(UNREAL & set(phrase.split()))


def _negated(pattern: Pattern, before: str, phrase: str) -> bool:
    """Whether the phrase is denied: "I would never", "no thoughts of", or inside of it: "I do not cut"."""
    if pattern.kind in (SUICIDE, SELF_HARM):
        words = phrase.split()
        inside = " ".join(words[: words.index("not") + 1]) if "not" in words else ""
        spelt = _SPELT.search(pattern.regex.pattern)
        return bool(DENIED.search(f"{before}{words[0]} ") or DENIED.search(before)) or (
            bool(inside) and not spelt and bool(DENIED.search(f" {inside} "))
        )
    near = before.split()[-REACH:]
    for index, word in enumerate(near):
        following = [*near[index + 1 :], *phrase.split()]
        if "reason" in near[:index]:  # no reason not to
            return False
        if word in NEGATIONS and following[0] not in NO_DENIAL and not OPENERS & set(near[index + 1 :]):
            return True
    return False


def _of_today(phrase: str, before: str) -> bool:
    """Whether the phrase, or the words right before it, stand in the present."""
    lead = before.split()[-3:]
    return bool(_CONTEXT["present"].search(f" {' '.join(lead)}{phrase}")) and not GONE_BY & set(lead)


def _of_another(phrase: str, before: str) -> bool:
    """Whether a phrase without "I" is said of another person: of the last one named before it."""
    if FIRST & set(phrase.split()):
        return False
    last = next((word for word in reversed(before.split()) if word in THIRD or word in ("i", "me")), "")
    return last in THIRD


def _only_told(pattern: Pattern, phrase: str, before: str, around: str) -> bool:
    """Of a song, a film, a game, the news: not of the one who writes, nor of somebody near."""
    if not _CONTEXT["story"].search(around) or " my " in phrase:
        return False
    if '"' in phrase:
        return True
    if pattern.kind in (SUICIDE, SELF_HARM):
        return not FIRST & set(phrase.split()) and (
            _of_another(phrase, before) or not FIRST & set(before.split())
        )
    return " i " not in phrase or pattern.kind in (HARM_TO_OTHERS, EMERGENCY)


def _is_figurative(pattern: Pattern, phrase: str, around: str) -> bool:
    """Dying of laughter, killing for a sandwich, hurting oneself by a fall."""
    if pattern.kind == SELF_HARM and " hurt " in phrase and _CONTEXT["accident"].search(around):
        return True
    loose = " die " in phrase or " breathe " in phrase or " dead " in phrase
    if loose and _CONTEXT["figurative"].search(around):
        return True
    return pattern.kind == HARM_TO_OTHERS and bool(_CONTEXT["annoyance"].search(around))


def softened(text: str, start: int, end: int) -> bool:
    """Whether a sentence tells of what is past or overcome."""
    sentence = text[start:end] + " "
    if _CONTEXT["current"].search(sentence):
        return bool(_CONTEXT["overcome"].search(sentence) and _CONTEXT["past"].search(sentence))
    return bool(_CONTEXT["past"].search(sentence) or _CONTEXT["overcome"].search(sentence))
