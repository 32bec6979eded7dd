"""What each part of the listener is worth: the same replies without it, beside the whole listener's.

A row of this table is a listener with places or judges switched off; its name and its conditions say which.
"""

from collections.abc import Sequence

from listenwell.evaluation.ledger import Result
from listenwell.evaluation.markdown import Grid
from listenwell.evaluation.units import METRICS, Metric

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
)
"""Figures in which a listener's parts can be seen."""


def ablation_grid(results: Sequence[Result]) -> Grid:
    """A row for each thing switched off, and how far each figure moves from the whole listener's.

    The whole listener is the row of replies by the same system; a difference stands only where both answered
    the same contexts with the same seed.
    """
    wholes = {result.system: result for result in results if result.task == "replies"}
    rows: list[tuple[str, ...]] = []
    shown: list[Result] = []
    for result in (one for one in results if one.task == ABLATIONS):
        off = dict(result.conditions).get(OFF, "")
        system = result.system.removesuffix(f" without {off}")
        whole = wholes.get(system)
        if whole is not None and whole not in shown:
            shown.append(whole)
            rows.append((system, _WHOLE, f"{whole.count:,}", *(_cell(name, whole, None) for name in SHOWN)))
        same = whole if whole is not None and _sample(whole) == _sample(result) else None
        rows.append((system, off, f"{result.count:,}", *(_cell(name, result, same) for name in SHOWN)))
    headings = ("system", "switched off", "n", *(_heading(METRICS[name]) for name in SHOWN))
    return Grid("What each part is worth", headings, tuple(rows), frozenset(range(2, len(headings))))


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
