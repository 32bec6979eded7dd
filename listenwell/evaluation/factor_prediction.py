"""Whether a generator foretells what people do next: CoMAE's Table 4 (Zheng et al. 2021, §6.5).

The paper asks for Y "given that X is predicted rightly": P(Ŷ = Y* | X̂ = X*), over the replies for which both
models of a pair, X ‖ Y and X → Y, foretell X. Here X is the factor before Y, with those before X given.
Beside it stands the same over all replies, with every factor before Y given.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from listenwell.dialogue import Dialogue, Example, Factors
from listenwell.errors import InputError
from listenwell.labels import ACTS, EMOTIONS, MECHANISMS, TONES
from listenwell.metrics import rank_of_truth, recall_at, sign_test
from listenwell.serialization import dumps

TASK = "planning"
LEVELS = ("emotion", "mechanisms", "act", "tone")
"""The order in which a plan is decided; a generator need not have all of them."""
SHORT = {"mechanisms": "CM", "act": "DA", "tone": "EM"}
_LABELS = {"emotion": EMOTIONS, "act": ACTS, "tone": TONES}
PREDICTED = "the likeliest label, of mechanisms yes from a probability of 0.5 on; ties count against us"


class Plans(Protocol):
    """A generator that plans."""

    name: str

    def factor_probabilities(self, dialogue: Dialogue, given: Factors) -> Mapping[str, np.ndarray]:
        """Probabilities of the next factor that is not given, and perhaps of later ones."""
        ...


@dataclass(frozen=True)
class FactorPrediction:
    """What a generator made of one reply before it was spoken, each factor given the true ones before it."""

    id: str
    ranks: tuple[tuple[str, int], ...]
    """Of the true emotion, act and tone: 1 is the likeliest. Factors that the generator lacks are left out."""
    mechanisms: tuple[tuple[bool, bool], ...] = ()
    """For ER, IP and EX whether the reply has it, and whether the generator foretells it."""

    def is_right(self, level: str) -> bool:
        """Whether a factor was foretold; mechanisms all at once."""
        if level == "mechanisms":
            return all(true == found for true, found in self.mechanisms)
        return dict(self.ranks)[level] == 1

    def has(self, level: str) -> bool:
        """Whether the generator has a factor at all."""
        return bool(self.mechanisms) if level == "mechanisms" else level in dict(self.ranks)


def predict_factors(
    generator: Plans, examples: Iterable[tuple[str, Example, Factors]]
) -> list[FactorPrediction]:
    """Ask a generator for every factor of each reply, one after the other.

    Args:
        generator: who plans.
        examples: each with its id and the true plan.
    """
    found = []
    for name, example, plan in examples:
        given, ranks = Factors(), dict[str, int]()
        pairs: tuple[tuple[bool, bool], ...] = ()
        probabilities = generator.factor_probabilities(example.context, given)
        for level in LEVELS:
            if level not in probabilities:
                continue  # the generator has no such factor
            truth = getattr(plan, level)
            if level == "mechanisms":
                pairs = _mechanisms(probabilities[level], truth)
            else:
                row = np.asarray(probabilities[level], np.float64)[None]
                ranks[level] = int(rank_of_truth(row, np.array([_LABELS[level].index(truth)]))[0])
            given = replace(given, **{level: truth})
            probabilities = generator.factor_probabilities(example.context, given)
        found.append(FactorPrediction(name, tuple(ranks.items()), pairs))
    return found


def _mechanisms(probabilities: np.ndarray, truth: Sequence[str]) -> tuple[tuple[bool, bool], ...]:
    return tuple(
        (name in truth, bool(probability >= 0.5))
        for name, probability in zip(MECHANISMS, probabilities, strict=True)
    )


def measure_planning(
    found: Sequence[FactorPrediction], other: Sequence[FactorPrediction] | None = None
) -> dict[str, float]:
    """Every figure of planning, in percent.

    Args:
        found: what the generator foretold.
        other: what the other model of the pair did of the same replies; the condition "X was foretold" is
            then asked of both, as in the paper.
    """
    if not found:
        raise InputError("There are no plans to measure.", "Name a split that has annotated replies.")
    _check_same(found, other)
    figures: dict[str, float] = {}
    levels = [level for level in LEVELS if found[0].has(level)]
    if "mechanisms" in levels:
        figures |= _of_mechanisms(found)
    elif "act" in levels:
        figures["da_first"] = _hits(found, "act", 1)
    for level, short in (("act", "da"), ("tone", "em")):
        if level not in levels:
            continue
        figures |= {f"{short}_hits_{k}": _hits(found, level, k) for k in (1, 3)}
        if (chosen := after_right(found, level, other)) is not None:
            figures[f"{short}_share"] = 100 * len(chosen) / len(found)
            if chosen:
                figures |= {f"{short}_hits_{k}_after": _hits(chosen, level, k) for k in (1, 3)}
    if "emotion" in levels:
        figures |= {f"emotion_hits_{k}": _hits(found, "emotion", k) for k in (1, 5)}
    return figures


def before(found: FactorPrediction, level: str) -> str | None:
    """X of the pair: the factor that stands before another in this speaker's plan; emotions are none."""
    earlier = [name for name in LEVELS[1 : LEVELS.index(level)] if found.has(name)]
    return earlier[-1] if earlier else None


def after_right(
    found: Sequence[FactorPrediction], level: str, other: Sequence[FactorPrediction] | None = None
) -> list[FactorPrediction] | None:
    """The replies for which X was foretold (by both models, where there is another); None without an X."""
    if (first := before(found[0], level)) is None:
        return None
    second = other if other is not None and other[0].has(first) else found
    return [
        one
        for one, theirs in zip(found, second, strict=True)
        if one.is_right(first) and theirs.is_right(first)
    ]


def against(
    found: Sequence[FactorPrediction], other: Sequence[FactorPrediction], name: str
) -> dict[str, str]:
    """The sign test of Table 4 in words: Hits@1 of Y against another model's, where both foretell X.

    Args:
        found: what the generator foretold.
        other: what the other did, of the same replies.
        name: of the other.
    """
    _check_same(found, other)
    said = {}
    for level in ("act", "tone"):
        ours, theirs = after_right(found, level, other), after_right(other, level, found)
        if not ours or not theirs or not (ours[0].has(level) and theirs[0].has(level)):
            continue
        pairs = list(zip(ours, theirs, strict=True))
        wins = sum(one.is_right(level) and not two.is_right(level) for one, two in pairs)
        losses = sum(two.is_right(level) and not one.is_right(level) for one, two in pairs)
        said[f"{SHORT[level]} against {name}"] = (
            f"{wins} won, {losses} lost, sign test p {sign_test(wins, losses):.2g}"
        )
    return said


def planning_conditions(found: Sequence[FactorPrediction], other: str | None) -> dict[str, str]:
    """How the figures came about, in words."""
    pairs = [
        f"{SHORT[level]} given that {SHORT[first]} was foretold"
        for level in ("act", "tone")
        if found[0].has(level) and (first := before(found[0], level))
    ]
    by = f"by this model and by {other}" if other else "by this model"
    return {
        "foretold": PREDICTED,
        "given": f"true factors before each; {'; '.join(pairs)} {by}"
        if pairs
        else "true factors before each",
    }


def write_predictions(found: Iterable[FactorPrediction], file: Path) -> None:
    """One reply a line, so that another model can be held against it."""
    from listenwell.files import written_whole

    with written_whole(file) as out:
        for one in found:
            line = {
                "id": one.id,
                "ranks": dict(one.ranks),
                "mechanisms": [list(pair) for pair in one.mechanisms],
            }
            out.write(dumps(line).encode() + b"\n")


def read_predictions(file: Path) -> list[FactorPrediction]:
    """What `write_foretold` wrote."""
    found = []
    try:
        for line in file.read_text(encoding="utf-8").splitlines():
            data = json.loads(line)
            ranks = tuple((str(level), int(rank)) for level, rank in data["ranks"].items())
            pairs = tuple((bool(true), bool(said)) for true, said in data["mechanisms"])
            found.append(FactorPrediction(str(data["id"]), ranks, pairs))
    except OSError:
        raise InputError(f"There is no file {file}.", "Name a planning.jsonl of an evaluation.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{file} holds no plans.", "Name a planning.jsonl of an evaluation.") from None
    return found


def _of_mechanisms(found: Sequence[FactorPrediction]) -> dict[str, float]:
    """Accuracy and macro F1 (of yes and no) of each mechanism, and all three at once."""
    figures = {"cm_exact": 100 * sum(one.is_right("mechanisms") for one in found) / len(found)}
    for place, short in enumerate(("er", "ip", "ex")):
        pairs = [one.mechanisms[place] for one in found]
        figures[f"{short}_accuracy"] = 100 * sum(true == said for true, said in pairs) / len(pairs)
        figures[f"{short}_f1"] = 50 * sum(_f1(pairs, answer) for answer in (True, False))
    return figures


def _f1(pairs: Sequence[tuple[bool, bool]], answer: bool) -> float:
    """F1 of one answer; 0 where it never occurs on either side, as scikit-learn counts."""
    both = sum(true == said == answer for true, said in pairs)
    each = sum((true == answer) + (said == answer) for true, said in pairs)
    return 2 * both / each if each else 0.0


def _hits(found: Sequence[FactorPrediction], level: str, k: int) -> float:
    return recall_at(np.array([dict(one.ranks)[level] for one in found]), k)


def _check_same(found: Sequence[FactorPrediction], other: Sequence[FactorPrediction] | None) -> None:
    if other is not None and [one.id for one in found] != [one.id for one in other]:
        raise InputError("The two models foretold different replies.", "Measure both on the same sample.")
