"""What each part of the listener is worth: the same replies without it, beside the whole listener's.

A row of this table is a listener with places or judges switched off; its name and its conditions say which.
Where raters read the same replies, what they said stands there too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from listenwell.preference.score import RATINGS
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import METRICS, Metric
from listenwell.results.store import Result

ABLATIONS = "ablations"
OFF = "switched off"
_WHOLE = "nothing: the whole listener"
SHOWN = (
    "distinct_replies",
    "distinct_2",
    "stock_phrases",
    "sorry_to_hear",
    "er_level",
    "ip_level",
    "ex_level",
    "invented_life",
    "sentence_similarity",
    "rouge_l",
    "length",
    "rated_overall",
    "preferred",
)
"""Figures in which a listener's parts can be seen."""


def ablation_grid(results: Sequence[Result]) -> Grid:
    """A row for each thing switched off, and how far each figure moves from the whole listener's.

    The whole listener is the row of replies by the same system; a difference stands only where both answered
    the same contexts with the same seed.
    """
    rated = {result.system: result for result in results if result.task == RATINGS}
    wholes = {
        result.system: _with_ratings(result, rated, result.system)
        for result in results
        if result.task == "replies"
    }
    rows: list[tuple[str, ...]] = []
    shown: list[Result] = []
    for found in (one for one in results if one.task == ABLATIONS and OFF in dict(one.conditions)):
        off = dict(found.conditions)[OFF]
        system = found.system.removesuffix(f" without {off}")
        result, whole = _with_ratings(found, rated, system), wholes.get(system)
        if whole is not None and whole not in shown:
            shown.append(whole)
            rows.append((system, _WHOLE, f"{whole.count:,}", *(_cell(name, whole, None) for name in SHOWN)))
        same = whole if whole is not None and _sample(whole) == _sample(result) else None
        rows.append((system, off, f"{result.count:,}", *(_cell(name, result, same) for name in SHOWN)))
    headings = ("system", "switched off", "n", *(_heading(METRICS[name]) for name in SHOWN))
    return Grid("What each part is worth", headings, tuple(rows), frozenset(range(2, len(headings))))


def of_models(results: Sequence[Result]) -> list[Result]:
    """Those rows that are of a model without a part of its own, such as CoBERT without a hop."""
    return [one for one in results if one.task == ABLATIONS and OFF not in dict(one.conditions)]


def _with_ratings(result: Result, rated: Mapping[str, Result], whole: str) -> Result:
    """The row with what raters said, where its replies stood on the same sheets as the whole listener's."""
    mine, theirs = rated.get(result.system), rated.get(whole)
    if mine is None or theirs is None or mine.data != theirs.data:
        return result
    return replace(result, metrics=(*result.metrics, *mine.metrics))


def _sample(result: Result) -> tuple[object, ...]:
    return (result.corpus, result.split, result.count, result.seed, dict(result.conditions).get("sample"))


def _cell(name: str, result: Result, whole: Result | None) -> str:
    kind, value = METRICS[name], result.metric(name)
    base = whole.metric(name) if whole else None
    if value is None or base is None:
        return kind.show(value)
    change = kind.show(round(value - base, kind.decimals) + 0.0)
    return f"{kind.show(value)} ({change if change.startswith('−') else f'+{change}'})"


def _heading(kind: Metric) -> str:
    return f"{kind.label} (%)" if kind.unit == "percent" else kind.label
