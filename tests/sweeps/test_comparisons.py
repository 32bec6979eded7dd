"""Rows of a sweep against each other, from the ranks that runs keep."""

import numpy as np
import pytest

from listenwell.errors import InputError
from listenwell.rankers.scoring import RANKS
from listenwell.recipe import write_recipe
from listenwell.results.store import Result, write_result
from listenwell.sweeps.aggregate import aggregate
from listenwell.sweeps.comparisons import compare
from listenwell.sweeps.grid import read_sweeps

RECIPE = """
output: runs/x
model: ranker
batches: {batching: examples, examples: 4}
metric: error
ranker: {model: bi}
"""
SWEEP = """
name: few
table: few rows
recipe: base.yaml
seeds: [1, 2]
compare: {with: without}
runs:
  with: {ranker: {persona: 5}}
  without: {ranker: {persona: 0}}
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.yaml").write_text(RECIPE)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    return read_sweeps([tmp_path / "sweep.yaml"])[0]


def finish(sweep, ranks):
    """As if the runs had been made: ranks by row and seed."""
    for run in sweep.runs:
        found = np.array(ranks[run.row][run.seed - 1], np.int32)
        run.recipe.output.mkdir(parents=True)
        write_recipe(run.recipe, run.recipe.output / "recipe.yaml")
        np.save(run.recipe.output / RANKS, found)
        hits = 100 * float(np.mean(found == 1))
        result = Result("ranking", run.row, (("R@1", hits),), "c", "test", len(found), "d", checkpoint="e")
        write_result(result, run.result)


def test_the_gain_is_that_of_the_means_over_seeds(sweep, tmp_path):
    half = [1] * 40 + [2] * 60
    finish(sweep, {"with": [[1] * 100, half], "without": [half, [3] * 100]})
    result = compare(sweep, "with", "without")
    figures = dict(result.metrics)
    assert (result.task, result.system, result.count) == ("few rows", "with over without", 100)
    # with: 40 items at 100 %, 60 at 50 %; without: 40 items at 50 %, 60 at 0 %: each item gains 50 points.
    assert figures["gain"] == figures["gain_low"] == figures["gain_high"] == 50
    assert figures["gain_p"] == pytest.approx(2 / 10_001)
    names = {file.name for file in aggregate([sweep], tmp_path / "results").files}
    assert names == {"with.json", "without.json", "with-over-without.json"}


def test_an_interval_holds_no_gain_where_rows_are_equal_on_average(sweep):
    even, odd = [1, 2] * 50, [2, 1] * 50
    finish(sweep, {"with": [even, even], "without": [odd, odd]})
    figures = dict(compare(sweep, "with", "without").metrics)
    assert figures["gain"] == 0
    assert figures["gain_low"] < 0 < figures["gain_high"]


def test_missing_runs_give_nothing_and_unequal_ones_an_error(sweep):
    assert compare(sweep, "with", "without") is None
    finish(sweep, {"with": [[1] * 4, [1] * 4], "without": [[1] * 5, [1] * 5]})
    with pytest.raises(InputError, match="different items"):
        compare(sweep, "with", "without")
    with pytest.raises(InputError, match="no row"):
        compare(sweep, "wth", "without")
