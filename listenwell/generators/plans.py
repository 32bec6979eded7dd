"""Plans as tokens before a reply's text.

CoMAE's chain P(CM|x) P(DA|x,CM) P(EM|x,CM,DA) P(y|x,CM,DA,EM) (Eq. 1), with the user's emotion before it, is
ordinary next-token prediction once every factor is a token: emotion, mechanisms (one token for each of the 8
sets of ER, IP, EX), act, expressed emotion, in this order.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from listenwell.dialogue import Example, Factors
from listenwell.errors import InputError, WeightsError
from listenwell.labels import (
    ACTS,
    EMOTIONS,
    EXPRESSED_EMOTIONS,
    MANNERS,
    MECHANISM_ABBREVIATIONS,
    MECHANISMS,
    mechanism,
)
from listenwell.runtime.text import Vocabulary

LEVELS = ("emotion", "mechanisms", "act", "expressed_emotion")
"""The order in which a plan is decided."""
SETS: tuple[tuple[str, ...], ...] = tuple(
    tuple(name for name, is_used in zip(MECHANISMS, used, strict=True) if is_used)
    for used in product((False, True), repeat=len(MECHANISMS))
)
"""The 8 sets of mechanisms: none, EX, IP, IP and EX, ER, ER and EX, ER and IP, all."""
_SHORT = {name: short for short, name in MECHANISM_ABBREVIATIONS.items()}


CHOICES: dict[str, tuple[object, ...]] = {
    "emotion": EMOTIONS.labels,
    "mechanisms": SETS,
    "act": ACTS.labels,
    "expressed_emotion": EXPRESSED_EMOTIONS.labels,
}
"""The values of each level."""


def token_name(level: str, value: object) -> str:
    """The token of a value, such as `<|act:questioning|>` or `<|mechanisms:ER+EX|>`."""
    if level == "mechanisms" and isinstance(value, tuple):
        value = "+".join(_SHORT[name] for name in value) or "none"
    # The vocabularies of trained generators have this name.
    name = "tone" if level == "expressed_emotion" else level
    return f"<|{name}:{value}|>"


def token_words(level: str, value: object) -> str:
    """A value in words, to initialize its token's embedding."""
    words = " ".join(value) if isinstance(value, tuple) else str(value)
    return f" {words.replace('_', ' ') or 'none'}"


TOKENS: tuple[str, ...] = tuple(token_name(level, value) for level in LEVELS for value in CHOICES[level])
"""All 59 plan tokens, in the order of their numbers."""
MANNER_TOKENS: tuple[str, ...] = tuple(f"<|manner:{name}|>" for name in MANNERS)
"""They stand before the plan, and follow the plan tokens in the vocabulary."""
CROWD = MANNERS[0]
"""The manner of corpora that note none: people who were asked to talk."""


def manner_tokens(vocabulary: Vocabulary) -> dict[str, int]:
    """The numbers of the manners' tokens; none in the vocabulary of a generator that has no manners."""
    with suppress(WeightsError):
        return {name: vocabulary.special(token) for name, token in zip(MANNERS, MANNER_TOKENS, strict=True)}
    return {}


@dataclass(frozen=True)
class PlanTokens:
    """The plan tokens' numbers in one vocabulary."""

    numbers: tuple[tuple[int, ...], ...]
    """For each level of LEVELS, a number for each of its CHOICES."""

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> "PlanTokens":
        """The plan tokens of a vocabulary; one without them is an error."""
        return cls(
            tuple(
                tuple(vocabulary.special(token_name(level, value)) for value in CHOICES[level])
                for level in LEVELS
            )
        )

    def encode(self, plan: Factors) -> list[int]:
        """A whole plan's tokens."""
        tokens = []
        for numbers, level in zip(self.numbers, LEVELS, strict=True):
            value = getattr(plan, level)
            if value is None:
                raise InputError(f"The plan has no {level}.", "Give a whole plan.")
            tokens.append(numbers[CHOICES[level].index(value)])
        return tokens

    def decode(self, tokens: Sequence[int]) -> Factors:
        """The plan that tokens stand for; fewer than four give its first levels."""
        values = {
            level: CHOICES[level][numbers.index(token)]
            for numbers, level, token in zip(self.numbers, LEVELS, tokens, strict=False)
        }
        return Factors(**values)  # type: ignore[arg-type]


def plan_of(example: Example) -> Factors | None:
    """The plan of a human reply: the corpus's emotion where it has one, otherwise the annotated factors; None
    where a factor is missing."""
    read = example.reply.factors or Factors()
    plan = Factors(
        emotion=example.context.emotion or read.emotion,
        mechanisms=read.mechanisms,
        act=read.act,
        expressed_emotion=read.expressed_emotion,
    )
    return plan if is_whole(plan) else None


def is_whole(plan: Factors) -> bool:
    """Whether a plan has every level."""
    return all(getattr(plan, level) is not None for level in LEVELS)


def wanted(
    emotion: str | None = None,
    mechanisms: Sequence[str] | None = None,
    act: str | None = None,
    expressed_emotion: str | None = None,
) -> Factors:
    """A target from a user's own spelling of the labels; an unknown label is an error with the valid ones.

    Args:
        emotion: what the other person feels.
        mechanisms: which of ER, IP, EX it uses, by name or abbreviation, and no other; ("none",) for none.
        act: what the reply does.
        expressed_emotion: of the reply.
    """
    chosen: tuple[str, ...] | None = None
    if mechanisms is not None:
        names = [name for name in mechanisms if name.strip().casefold() != "none"]
        if names and len(names) < len(mechanisms):
            raise InputError(
                f"The mechanisms are none and {', '.join(names)}: they contradict each other.",
                "Give none alone, or leave it out.",
            )
        chosen = tuple(mechanism(name) for name in names)
    return Factors(
        emotion=EMOTIONS.match(emotion) if emotion is not None else None,
        mechanisms=chosen,
        act=ACTS.match(act) if act is not None else None,
        expressed_emotion=EXPRESSED_EMOTIONS.match(expressed_emotion)
        if expressed_emotion is not None
        else None,
    )


def known_plans(examples: Sequence[Example]) -> Iterator[tuple[Example, Factors]]:
    """Every reply with its plan; those without annotations get them from the shipped annotators."""
    plans = [plan_of(example) for example in examples]
    missing = [index for index, plan in enumerate(plans) if plan is None]
    if missing:
        from listenwell.annotators.annotator import Annotator

        heads = ("emotion", "act", "expressed_emotion", "emotional_reaction", "interpretation", "exploration")
        whole = (
            replace(examples[index].context, turns=(*examples[index].context.turns, examples[index].reply))
            for index in missing
        )
        for index, dialogue in zip(missing, Annotator.load(heads=heads).annotate_all(whole, 1), strict=True):
            plans[index] = plan_of(Example(examples[index].context, dialogue.turns[-1]))
    for example, plan in zip(examples, plans, strict=True):
        if plan is not None:  # a reply to one's own words has no mechanisms
            yield example, plan
