import hashlib
import math
from dataclasses import replace

import pytest

from listenwell.errors import InputError, RecipeError
from listenwell.evaluation.report.page import settings_text
from listenwell.evaluation.report.tables import figure_grids
from listenwell.recipe import write_recipe
from listenwell.results.store import read_result, read_results, write_result
from listenwell.sweeps.aggregate import aggregate, row_result
from listenwell.sweeps.grid import read_sweeps
from tests.sweeps.sweep_helpers import SWEEP, finish, made_up, write_sweep


@pytest.fixture
def sweep(tmp_path):
    (read,) = read_sweeps([write_sweep(tmp_path / "sweeps")], tmp_path / "runs")
    return read


def finish_all(sweep, **changes):
    for run in sweep.runs:
        finish(
            run, {("4 numbers", 1): 10.0, ("4 numbers", 2): 14.0}.get((run.row, run.seed), 50.0), **changes
        )


def test_a_row_is_the_mean_of_its_seeds_with_their_spread(sweep, tmp_path):
    finish_all(sweep)
    done = aggregate([sweep], tmp_path / "results")
    assert [file.name for file in done.files] == ["4-numbers.json", "8-numbers.json"]
    assert done.lacking == ()
    four, eight = map(read_result, done.files)
    assert dict(four.metrics) == {"accuracy": 12.0, "nll": 3.0}
    # Sample standard deviation: ((10 − 12)² + (14 − 12)²) / (2 − 1) = 8.
    assert dict(four.spreads) == {"accuracy": pytest.approx(math.sqrt(8)), "nll": 0.0}
    assert (four.task, four.system, four.seed, four.count) == ("topic", "4 numbers", None, 3)
    assert dict(four.conditions) == {"model": "bag", "steps": "100 to 200", "seeds": "1, 2"}
    both = "1" * 64 + "\n" + "2" * 64
    assert four.checkpoint == hashlib.sha256(both.encode()).hexdigest()
    assert four.command == "listenwell sweep sweep.yaml --only '4 numbers'"
    assert (four.commit, four.machine, four.time) == ("abc", "a GPU", "2026-01-02T00:00:00Z")
    assert (dict(four.units), dict(four.versions)) == ({"accuracy": "percent"}, {"torch": "2.0"})
    assert eight.metric("accuracy") == 50.0


def test_the_page_shows_what_was_gathered(sweep, tmp_path):
    finish_all(sweep)
    aggregate([sweep], tmp_path / "results")
    results = read_results(tmp_path / "results")
    grid = figure_grids("topic", results, ())[0]
    assert grid.rows[0] == ("4 numbers", "ours", "3", "12.00 ± 2.83")
    assert "- seeds: 1, 2\n" in settings_text(results)


def test_the_sweep_names_the_table(tmp_path):
    file = write_sweep(tmp_path, SWEEP.replace("name: sizes", "name: sizes\ntable: bag sizes"))
    (sweep,) = read_sweeps([file], tmp_path / "runs")
    finish_all(sweep)
    (written,) = aggregate([sweep], tmp_path / "results", ["8 numbers"]).files
    assert written.name == "8-numbers.json"
    assert read_result(written).task == "bag sizes"


def test_the_command_keeps_a_place_that_is_relative(tmp_path, monkeypatch):
    write_sweep(tmp_path / "sweeps")
    monkeypatch.chdir(tmp_path)
    (sweep,) = read_sweeps([(tmp_path / "sweeps" / "sweep.yaml").relative_to(tmp_path)])
    assert row_result(sweep, "8 numbers", {1: made_up(1, 5.0)}).command.startswith(
        "listenwell sweep sweeps/sweep.yaml --only"
    )


def test_missing_seeds_are_an_error_that_names_them(sweep, tmp_path):
    finish(sweep.runs[0], 10.0)
    with pytest.raises(InputError, match=r"4 numbers, seed 2; sizes: 8 numbers, seed 1, 2\..*--partial"):
        aggregate([sweep], tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_part_says_so_in_its_conditions(sweep, tmp_path):
    finish(sweep.runs[0], 10.0)
    done = aggregate([sweep], tmp_path / "results", partial=True)
    assert done.lacking == ("sizes: 4 numbers, seed 2", "sizes: 8 numbers, seed 1, 2")
    (file,) = done.files
    result = read_result(file)
    assert dict(result.conditions)["seeds"] == "1 alone, of 2 planned"
    assert (result.seed, result.spreads, result.metric("accuracy")) == (1, (), 10.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"conditions": (("model", "classifier"),)}, "'model' differs.*seed 1: bag; seed 2: classifier"),
        ({"conditions": (("model", "bag"), ("pool", "x"))}, "'pool' differs.*seed 1: –; seed 2: x"),
        ({"count": 4}, "'count' differs"),
        ({"data": "e"}, "'data' differs"),
        ({"split": "valid"}, "'split' differs"),
        ({"corpus": "other"}, "'corpus' differs"),
        ({"task": "other"}, "'task' differs"),
        ({"metrics": (("accuracy", 1.0),)}, "'metrics' differs"),
    ],
)
def test_what_differs_between_seeds_is_named(sweep, changes, message):
    with pytest.raises(InputError, match=rf"sizes: 4 numbers: {message}"):
        row_result(sweep, "4 numbers", {1: made_up(1, 1.0), 2: made_up(2, 2.0, **changes)})


def test_different_surroundings_are_mixed_not_hidden(sweep):
    other = made_up(2, 2.0, commit="", machine="a CPU", versions=(("torch", "3.0"), ("peft", "1")))
    result = row_result(sweep, "4 numbers", {2: other, 1: made_up(1, 1.0)})
    assert result.commit == "mixed: abc, unknown"
    assert result.machine == "mixed: a GPU, a CPU"
    assert dict(result.versions) == {"torch": "mixed: 2.0, 3.0", "peft": "mixed: none, 1"}
    generic_question = replace(made_up(1, 1.0), checkpoint=None)
    assert row_result(sweep, "4 numbers", {1: generic_question}).checkpoint is None


def test_runs_of_another_recipe_are_not_gathered(sweep, tmp_path):
    finish_all(sweep)
    run = sweep.runs[1]
    write_recipe(replace(run.recipe, dropout=0.9), run.recipe.output / "recipe.yaml")
    with pytest.raises(RecipeError, match=r"8 numbers, seed 1: .* another recipe"):
        aggregate([sweep], tmp_path / "results")


def test_a_file_of_another_row_is_not_replaced(sweep, tmp_path):
    finish_all(sweep)
    taken = tmp_path / "results" / "topic" / "4-numbers.json"
    write_result(made_up(1, 1.0, system="4 Numbers!"), taken)
    with pytest.raises(InputError, match=r"holds the row '4 Numbers!'"):
        aggregate([sweep], tmp_path / "results")
    write_result(made_up(1, 1.0, system="4 numbers"), taken)
    aggregate([sweep], tmp_path / "results")
    assert read_result(taken).metric("accuracy") == 12.0
