"""The ablation table: the listener without a stage or reranking feature, beside the whole listener.

A row's name and settings say what was switched off. Where raters rated the same replies, their ratings stand
there too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from listenwell.evaluation.report.names import display_name, feature_names
from listenwell.evaluation.report.tables import Marks, row_name
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import METRICS
from listenwell.results.store import RATINGS, Result

ABLATIONS = "ablations"
OFF = "switched off"
_WHOLE = "nothing: the whole listener"
_REPLIES = (
    "distinct_replies",
    "distinct_2",
    "stock_phrases",
    "sorry_to_hear",
    "sentence_similarity",
    "rouge_l",
    "length",
)
_EMPATHY = ("er_level", "ip_level", "ex_level", "invented_life", "rated_overall", "preferred")
SHOWN = (*_REPLIES, *_EMPATHY)
"""The metrics of the ablation tables."""


def ablation_grids(results: Sequence[Result], marks: Marks | None = None) -> list[Grid]:
    """A row for each ablation with its differences from the whole listener, in two tables.

    The whole listener is the same system's row of replies; a difference stands only where both answered the
    same contexts with the same seed.
    """
    pairs = _with_wholes(results)
    return [
        Grid(title, *_table(pairs, names, marks), frozenset(range(2, 3 + len(names))))
        for title, names in (
            ("Diversity, overlap and length", _REPLIES),
            ("Empathy and ratings", _EMPATHY),
        )
        if pairs
    ]


def model_ablations(results: Sequence[Result]) -> list[Result]:
    """The ablations of a model's own parts, such as CoBERT without a hop."""
    return [result for result in results if result.task == ABLATIONS and OFF not in dict(result.conditions)]


def _with_wholes(results: Sequence[Result]) -> list[tuple[Result, Result | None]]:
    """Each ablated row with the whole listener's, both with their ratings."""
    rated = {result.system: result for result in results if result.task == RATINGS}
    wholes = {
        result.system: _with_ratings(result, rated, result.system)
        for result in results
        if result.task == "replies"
    }
    pairs = []
    for result in results:
        off = dict(result.conditions).get(OFF)
        if result.task == ABLATIONS and off is not None:
            system = result.system.removesuffix(f" without {off}")
            pairs.append((_with_ratings(result, rated, system), wholes.get(system)))
    return pairs


def _table(
    pairs: Sequence[tuple[Result, Result | None]], names: Sequence[str], marks: Marks | None
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows: list[tuple[str, ...]] = []
    shown: list[Result] = []
    for result, whole in pairs:
        off = dict(result.conditions)[OFF]
        system = display_name(result.system.removesuffix(f" without {off}"))
        if whole is not None and whole not in shown:
            shown.append(whole)
            cells = (_cell(name, whole, None) for name in names)
            rows.append((row_name(whole, marks), _WHOLE, f"{whole.count:,}", *cells))
        same = whole if whole is not None and _sample(whole) == _sample(result) else None
        cells = (_cell(name, result, same) for name in names)
        rows.append((system, feature_names(off), f"{result.count:,}", *cells))
    return ("system", OFF, "n", *(METRICS[name].heading for name in names)), tuple(rows)


def _with_ratings(result: Result, rated: Mapping[str, Result], whole: str) -> Result:
    """The row with its ratings, where its replies stood on the same sheets as the whole listener's."""
    own, reference = rated.get(result.system), rated.get(whole)
    if own is None or reference is None or own.data != reference.data:
        return result
    return replace(result, metrics=(*result.metrics, *own.metrics))


def _sample(result: Result) -> tuple[object, ...]:
    return (result.corpus, result.split, result.count, result.seed, dict(result.conditions).get("sample"))


def _cell(name: str, result: Result, whole: Result | None) -> str:
    kind, value = METRICS[name], result.metric(name)
    base = whole.metric(name) if whole else None
    if value is None or base is None:
        return kind.show(value)
    change = kind.show(round(value - base, kind.decimals) + 0.0)
    return f"{kind.show(value)} ({change if change.startswith('−') else f'+{change}'})"
