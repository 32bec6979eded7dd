"""How well a generator predicts the factors of the human reply: CoMAE's Table 4 (Zheng et al. 2021, §6.5).

The paper measures Y "given that X is predicted rightly": P(Ŷ = Y* | X̂ = X*), over the replies for which both
models of a pair, X ‖ Y and X → Y, predict X. Here X is the factor before Y, with those before X given. The
same over all replies, with every factor before Y given, is measured too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from listenwell.corpora.sampling import example_id
from listenwell.dialogue import Example, Factors
from listenwell.errors import InputError
from listenwell.evaluation.request import EvaluationRequest, result_of, run_shares
from listenwell.evaluation.systems import GOLD, FactorModel
from listenwell.files import written_whole
from listenwell.generators.plans import plan_of
from listenwell.labels import ACTS, EMOTIONS, EXPRESSED_EMOTIONS, MECHANISMS
from listenwell.metrics import rank_of_truth, recall_at, sign_test
from listenwell.results.metric_registry import units
from listenwell.results.store import Result, environment, read_result, task_folder
from listenwell.serialization import ALWAYS, Record

TASK = "planning"
PREDICTIONS = "planning.jsonl"
"""The file of a run's folder that holds the predictions."""
LEVELS = ("emotion", "mechanisms", "act", "expressed_emotion")
"""The order in which a plan is decided; a generator need not have all of them."""
SHORT = {"mechanisms": "CM", "act": "DA", "expressed_emotion": "EM"}
_LABELS = {"emotion": EMOTIONS, "act": ACTS, "expressed_emotion": EXPRESSED_EMOTIONS}
RULE = "the likeliest label, of mechanisms yes from a probability of 0.5 on; ties count against us"


@dataclass(frozen=True)
class FactorPrediction(Record):
    """What a generator predicts of one reply, each factor given the true ones before it."""

    id: str
    ranks: tuple[tuple[str, int], ...]
    """Of the true factors but mechanisms: 1 is the likeliest. Factors of other generators are left out."""
    mechanisms: tuple[tuple[bool, bool], ...] = field(default=(), metadata=ALWAYS)
    """For ER, IP and EX whether the reply has it, and whether the generator predicts it."""

    def is_right(self, level: str) -> bool:
        """Whether a factor was predicted rightly; mechanisms all at once."""
        if level == "mechanisms":
            return all(true == predicted for true, predicted in self.mechanisms)
        return dict(self.ranks)[level] == 1

    def has(self, level: str) -> bool:
        """Whether the generator has a factor at all."""
        return bool(self.mechanisms) if level == "mechanisms" else level in dict(self.ranks)


def evaluate_factor_prediction(request: EvaluationRequest) -> Result:
    """One row of Table 4; the predictions are kept in the folder, for `compare_pair`."""
    request = replace(request, factors=GOLD)
    listener = request.system.listener()
    if len(shares := request.divided()) == 1:
        predictions = _predict_share(request, listener.generate)
    else:
        parts = run_shares(_predict_share, shares)
        count = sum(map(len, parts))
        predictions = [parts[index % len(parts)][index // len(parts)] for index in range(count)]
    write_predictions(predictions, request.out / PREDICTIONS)
    about = request.describe(listener, None)
    conditions = about["conditions"] | {"factors": "gold before each; see given"}
    conditions |= planning_conditions(predictions, None)
    return result_of(request.table or TASK, measure_planning(predictions), conditions, about)


def compare_pair(file: Path, other_file: Path) -> Result:
    """A row of Table 4 as the paper has it: over the replies for which both models of a pair predict X.

    Each file is the planning.jsonl of a model, with its result in the same folder.
    """
    predictions, others = read_predictions(file), read_predictions(other_file)
    base, other = _result_in(file.parent), _result_in(other_file.parent).system
    measured = measure_planning(predictions, others)
    conditions = dict(base.conditions) | planning_conditions(predictions, other)
    conditions |= against(predictions, others, other) | {"predicted by": base.command}
    return replace(
        base,
        metrics=tuple((name, round(value, 6)) for name, value in measured.items()),
        units=units(tuple(measured)),
        conditions=tuple(conditions.items()),
        command=str(environment()["command"]),
    )


def _result_in(folder: Path) -> Result:
    patterns = (f"{task_folder(TASK)}/*.json", f"{TASK}-*.json", "result.json")
    files = [file for pattern in patterns for file in sorted(folder.glob(pattern))]
    if not files:
        raise InputError(
            f"{folder} has no result of planning.", "Evaluate the model again: listenwell evaluate plans"
        )
    return read_result(files[0])


def _predict_share(request: EvaluationRequest, generator: object | None = None) -> list[FactorPrediction]:
    generator = generator or request.system.listener().generate
    if not isinstance(generator, FactorModel):
        raise InputError(f"{request.system.model} has no factors.", "Name a generator that plans.")
    planned = [
        (example_id(example, index), example, plan)
        for index, example in request.examples
        if (plan := plan_of(example))
    ]
    return predict_factors(generator, planned)


def predict_factors(
    generator: FactorModel, examples: Iterable[tuple[str, Example, Factors]]
) -> list[FactorPrediction]:
    """Let a generator predict every factor of each reply, given its id and true plan, one after the other."""
    predictions = []
    for name, example, plan in examples:
        known, ranks = Factors(), dict[str, int]()
        pairs: tuple[tuple[bool, bool], ...] = ()
        probabilities = generator.factor_probabilities(example.context, known)
        for level in LEVELS:
            if level not in probabilities:
                continue  # the generator has no such factor
            truth = getattr(plan, level)
            if level == "mechanisms":
                likely = np.asarray(probabilities[level]) >= 0.5
                pairs = tuple(
                    (name in truth, bool(yes)) for name, yes in zip(MECHANISMS, likely, strict=True)
                )
            else:
                row = np.asarray(probabilities[level], np.float64)[None]
                ranks[level] = int(rank_of_truth(row, np.array([_LABELS[level].index(truth)]))[0])
            known = replace(known, **{level: truth})
            probabilities = generator.factor_probabilities(example.context, known)
        predictions.append(FactorPrediction(name, tuple(ranks.items()), pairs))
    return predictions


def measure_planning(
    predictions: Sequence[FactorPrediction], others: Sequence[FactorPrediction] | None = None
) -> dict[str, float]:
    """Every metric of factor prediction, in percent.

    With the other model of a pair, the condition "X was predicted" applies to both, as in the paper.
    """
    if not predictions:
        raise InputError("There are no plans to measure.", "Name a split that has annotated replies.")
    _check_same(predictions, others)
    measured: dict[str, float] = {}
    levels = [level for level in LEVELS if predictions[0].has(level)]
    if "mechanisms" in levels:
        measured |= _of_mechanisms(predictions)
    elif "act" in levels:
        measured["da_first"] = _hits(predictions, "act", 1)
    for level, short in (("act", "da"), ("expressed_emotion", "em")):
        if level not in levels:
            continue
        measured |= {f"{short}_hits_{k}": _hits(predictions, level, k) for k in (1, 3)}
        if (subset := after_right(predictions, level, others)) is not None:
            measured[f"{short}_share"] = 100 * len(subset) / len(predictions)
            if subset:
                measured |= {f"{short}_hits_{k}_after": _hits(subset, level, k) for k in (1, 3)}
    if "emotion" in levels:
        measured |= {f"emotion_hits_{k}": _hits(predictions, "emotion", k) for k in (1, 5)}
    return measured


def before(prediction: FactorPrediction, level: str) -> str | None:
    """X of the pair: the factor before another in this generator's plan; emotions do not count."""
    earlier = [name for name in LEVELS[1 : LEVELS.index(level)] if prediction.has(name)]
    return earlier[-1] if earlier else None


def after_right(
    predictions: Sequence[FactorPrediction], level: str, others: Sequence[FactorPrediction] | None = None
) -> list[FactorPrediction] | None:
    """The replies for which X was predicted (by both models, where there are two); None without an X."""
    if (first := before(predictions[0], level)) is None:
        return None
    second = others if others is not None and others[0].has(first) else predictions
    return [
        ours
        for ours, theirs in zip(predictions, second, strict=True)
        if ours.is_right(first) and theirs.is_right(first)
    ]


def against(
    predictions: Sequence[FactorPrediction], others: Sequence[FactorPrediction], name: str
) -> dict[str, str]:
    """The sign test of Table 4 in words: Hits@1 of Y against the other model's, where both predict X."""
    _check_same(predictions, others)
    tests = {}
    for level in ("act", "expressed_emotion"):
        ours, theirs = after_right(predictions, level, others), after_right(others, level, predictions)
        if not ours or not theirs or not (ours[0].has(level) and theirs[0].has(level)):
            continue
        pairs = list(zip(ours, theirs, strict=True))
        wins = sum(first.is_right(level) and not second.is_right(level) for first, second in pairs)
        losses = sum(second.is_right(level) and not first.is_right(level) for first, second in pairs)
        tests[f"{SHORT[level]} against {name}"] = (
            f"{wins} won, {losses} lost, sign test p {sign_test(wins, losses):.2g}"
        )
    return tests


def planning_conditions(predictions: Sequence[FactorPrediction], other: str | None) -> dict[str, str]:
    """How the metrics are defined, in words."""
    pairs = [
        f"{SHORT[level]} given that {SHORT[first]} was predicted"
        for level in ("act", "expressed_emotion")
        if predictions[0].has(level) and (first := before(predictions[0], level))
    ]
    by = f"by this model and by {other}" if other else "by this model"
    condition = f"; {'; '.join(pairs)} {by}" if pairs else ""
    return {"predicted": RULE, "given": f"true factors before each{condition}"}


def write_predictions(predictions: Iterable[FactorPrediction], file: Path) -> None:
    """Write one reply a line, so that another model can be compared with it."""
    with written_whole(file) as out:
        out.writelines(f"{prediction.to_json()}\n".encode() for prediction in predictions)


def read_predictions(file: Path) -> list[FactorPrediction]:
    """Read what `write_predictions` wrote."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [FactorPrediction.from_json(line) for line in lines]
    except OSError:
        raise InputError(f"There is no file {file}.", "Name a planning.jsonl of an evaluation.") from None
    except (ValueError, InputError):
        raise InputError(f"{file} holds no plans.", "Name a planning.jsonl of an evaluation.") from None


def _of_mechanisms(predictions: Sequence[FactorPrediction]) -> dict[str, float]:
    """Accuracy and macro F1 (of yes and no) of each mechanism, and all three at once."""
    right = sum(prediction.is_right("mechanisms") for prediction in predictions)
    measured = {"cm_exact": 100 * right / len(predictions)}
    for column, short in enumerate(("er", "ip", "ex")):
        pairs = [prediction.mechanisms[column] for prediction in predictions]
        measured[f"{short}_accuracy"] = 100 * sum(true == predicted for true, predicted in pairs) / len(pairs)
        measured[f"{short}_f1"] = 50 * sum(_f1(pairs, label) for label in (True, False))
    return measured


def _f1(pairs: Sequence[tuple[bool, bool]], label: bool) -> float:
    """F1 of one label; 0 where it never occurs on either side, as in scikit-learn."""
    both = sum(true == predicted == label for true, predicted in pairs)
    each = sum((true == label) + (predicted == label) for true, predicted in pairs)
    return 2 * both / each if each else 0.0


def _hits(predictions: Sequence[FactorPrediction], level: str, k: int) -> float:
    return recall_at(np.array([dict(prediction.ranks)[level] for prediction in predictions]), k)


def _check_same(predictions: Sequence[FactorPrediction], others: Sequence[FactorPrediction] | None) -> None:
    if others is not None and [ours.id for ours in predictions] != [theirs.id for theirs in others]:
        raise InputError("The two models predicted different replies.", "Measure both on the same sample.")
