import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from listenwell.errors import InputError, RecipeError, UnknownNameError
from listenwell.files import slug
from listenwell.recipe import read_recipe, write_recipe
from listenwell.results.store import read_result
from listenwell.sweeps.grid import Job, SweepRun, merged, read_sweeps, select
from listenwell.sweeps.run import Outcome, log_end, main_metric, run_all, run_jobs, seed_list, threads_each
from listenwell.training.recipe import TrainRecipe
from listenwell.training.task_configs import FastTextTaskConfig
from tests.sweeps.sweep_helpers import (
    FAILS_ON_FOUR,
    ROOT,
    SUCCEEDS,
    SWEEP,
    finish,
    quick_job,
    write_sweep,
)


@pytest.fixture
def sweep(tmp_path):
    (read,) = read_sweeps([write_sweep(tmp_path / "sweeps")], tmp_path / "runs")
    return read


def program(text, log):
    return Job((sys.executable, "-c", text), log)


def test_rows_are_the_base_with_what_differs_and_seeds_come_first(sweep, tmp_path):
    assert [(run.row, run.seed) for run in sweep.runs] == [
        ("4 numbers", 1),
        ("8 numbers", 1),
        ("4 numbers", 2),
        ("8 numbers", 2),
    ]
    base = read_recipe(TrainRecipe, sweep.file.parent / "base.yaml")
    four, eight = sweep.runs[2].recipe, sweep.runs[1].recipe
    assert eight == replace(base, output=tmp_path / "runs" / "sizes" / "8-numbers-seed1", seed=1)
    assert four == replace(
        base,
        output=tmp_path / "runs" / "sizes" / "4-numbers-seed2",
        seed=2,
        task=FastTextTaskConfig(replace(base.task.fasttext, dimensions=4)),
        optimizer=replace(base.optimizer, learning_rate=0.1),
    )


def test_a_row_that_takes_long_can_have_fewer_seeds(tmp_path):
    file = write_sweep(tmp_path / "sweeps", SWEEP.replace('"8 numbers":', '"8 numbers": {seeds: [2]}'))
    (sweep,) = read_sweeps([file], tmp_path / "runs")
    assert [(run.row, run.seed) for run in sweep.runs] == [
        ("4 numbers", 1),
        ("4 numbers", 2),
        ("8 numbers", 2),
    ]
    assert (sweep.seeds_of("4 numbers"), sweep.seeds_of("8 numbers")) == ((1, 2), (2,))


@pytest.mark.parametrize("seeds", ["3", "[3]", "[]", "[1, x]"])
def test_a_rows_seeds_are_some_of_the_sweeps(tmp_path, seeds):
    file = write_sweep(tmp_path / "sweeps", SWEEP.replace('"8 numbers":', f'"8 numbers": {{seeds: {seeds}}}'))
    with pytest.raises(RecipeError, match=r"'8 numbers': its seeds are .*some of: 1, 2"):
        read_sweeps([file], tmp_path / "runs")


def test_a_row_can_name_its_own_recipe(tmp_path):
    file = write_sweep(tmp_path, SWEEP + '  "other": {recipe: sub/other.yaml, epochs: 2}\n')
    other = read_recipe(TrainRecipe, tmp_path / "base.yaml")
    write_recipe(replace(other, dropout=0.5, epochs=7.0), tmp_path / "sub" / "other.yaml")
    (sweep,) = read_sweeps([file])
    (run, _) = select([sweep], ["other"])
    assert (run.recipe.dropout, run.recipe.epochs) == (0.5, 2.0)
    assert run.recipe.output == Path("runs/sizes/other-seed1")


def test_a_rehearsal_has_a_folder_of_its_own(sweep, tmp_path):
    (rehearsal,) = read_sweeps([sweep.file], tmp_path / "runs", limit=5)
    assert [run.recipe.data.limit for run in rehearsal.runs] == [5] * 4
    assert rehearsal.runs[0].recipe.output == tmp_path / "runs" / "sizes-limit5" / "4-numbers-seed1"
    assert sweep.runs[0].recipe.data.limit is None


def test_settings_are_changed_one_by_one_and_free_names_are_taken_whole():
    base = {
        "output": "x",
        "model": "classifier",
        "epochs": 3.0,
        "lora": {"rank": 4},
        "data": {"corpus": "newsgroups", "limit": 5},
        "classifier": {"heads": ["act"], "repeat": {"a": 1, "b": 2}, "limit": 64},
    }
    kept = json.dumps(base)
    changes = {"data": {"limit": None}, "classifier": {"repeat": {"c": 3}}, "lora": None}
    assert merged(base, changes, TrainRecipe) == {
        "output": "x",
        "model": "classifier",
        "epochs": 3.0,
        "lora": None,
        "data": {"corpus": "newsgroups", "limit": None},
        "classifier": {"heads": ["act"], "repeat": {"c": 3}, "limit": 64},
    }
    assert merged({"lora": None}, {"lora": {"rank": 8}}, TrainRecipe) == {"lora": {"rank": 8}}
    assert json.dumps(base) == kept


def test_names_become_parts_of_file_names():
    assert slug("CoBERT − hop-1") == "cobert-hop-1"
    assert slug("25 % swapped, 10 sentences") == "25-swapped-10-sentences"
    assert slug("../é") == "nameless"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dimensions: 4", "dimension: 4", r"sweep\.yaml, row '4 numbers': fasttext has no field 'dimension'"),
        ("dimensions: 4", "dimensions: 0", r"row '4 numbers': fasttext\.dimensions is 0"),
        ("bag: {dimensions: 4}", "ranker: {turns: 0}", "row '4 numbers': TrainRecipe has no field 'ranker'"),
        ("bag: {dimensions: 4}", "seed: 3", "row '4 numbers': It sets 'seed'"),
        ("bag: {dimensions: 4}", "output: x", "row '4 numbers': It sets 'output'"),
        ("bag: {dimensions: 4}", "recipe: none.yaml", "row '4 numbers': Cannot read the recipe"),
        ("recipe: base.yaml", "", "row '4 numbers': It has no recipe"),
        ("about", "abuot", "no field 'abuot'.*'about'"),
        ("name: sizes", "name: ../sizes", r"name is '\.\./sizes'"),
        ("seeds: [1, 2]", "seeds: [1, 1]", "none twice"),
        ("seeds: [1, 2]", "seeds: []", "one at least"),
        ('"8 numbers":', '"4 NUMBERS":', "'4 numbers' and '4 NUMBERS' would share"),
        ('"8 numbers":', '"8 numbers": 3', r"runs\.8 numbers must be"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_named(tmp_path, old, new, message):
    assert old in SWEEP
    with pytest.raises(RecipeError, match=message):
        read_sweeps([write_sweep(tmp_path, SWEEP.replace(old, new))])


def test_two_sweeps_of_one_name_are_an_error(sweep):
    with pytest.raises(InputError, match="Two sweeps are named 'sizes'"):
        read_sweeps([sweep.file, sweep.file])


def test_rows_and_seeds_are_chosen_by_name(sweep):
    assert select([sweep]) == list(sweep.runs)
    assert select([sweep], ["8 numbers"], [2]) == [sweep.runs[3]]
    with pytest.raises(UnknownNameError, match=r"no row named '8 number'.*'8 numbers'"):
        select([sweep], ["8 number"])
    with pytest.raises(InputError, match="sizes has no seed 7"):
        select([sweep], (), [1, 7])
    assert seed_list("1, 2,3") == (1, 2, 3)
    for wrong in ("", "1;2", "-1", "x"):
        with pytest.raises(InputError, match="1,2,3"):
            seed_list(wrong)


def test_a_result_of_another_recipe_is_not_taken_for_this_one(sweep):
    run = sweep.runs[0]
    assert not run.is_finished()
    finish(run, 50.0)
    assert run.is_finished()
    # Where its files lie makes no difference; what it was trained with does.
    moved = replace(run.recipe, output=Path("elsewhere"), data=replace(run.recipe.data, path=Path("there")))
    write_recipe(moved, run.recipe.output / "recipe.yaml")
    assert run.is_finished()
    write_recipe(replace(run.recipe, epochs=1.0), run.recipe.output / "recipe.yaml")
    with pytest.raises(RecipeError, match=r"4 numbers, seed 1: .* result of another recipe.*--root"):
        run.is_finished()


def test_finished_runs_are_not_run_again_and_a_failure_stops_no_other(sweep, monkeypatch):
    monkeypatch.setattr(SweepRun, "job", quick_job(FAILS_ON_FOUR))
    finish(sweep.runs[2], 70.0)
    said, counted = [], []
    outcome = run_all(sweep.runs, 1, None, said.append, counted.append)
    assert outcome == Outcome(finished=3, failed=1)
    assert outcome.code == 1 and str(outcome) == "3 finished, 1 failed: the same command goes on"
    assert sum(counted) == 4
    assert said[0] == "1 of 4 runs are finished already"
    assert "sizes: 4 numbers, seed 1: failed with exit code 1" in said[1]
    assert said[1].endswith("log:\n    no room  [2J here")
    assert re.fullmatch(r"\[2/4\] sizes: 8 numbers, seed 1: accuracy 10\.00, \d+ s", said[2])
    assert re.fullmatch(r"\[3/4\] sizes: 8 numbers, seed 2: accuracy 20\.00, \d+ s", said[3])
    assert read_result(sweep.runs[2].result).metric("accuracy") == 70.0
    monkeypatch.setattr(SweepRun, "job", quick_job(SUCCEEDS))
    said.clear()
    assert run_all(sweep.runs, 2, None, said.append) == Outcome(finished=4)
    assert said[0] == "3 of 4 runs are finished already" and len(said) == 2


def test_a_run_without_a_result_failed(sweep, monkeypatch):
    monkeypatch.setattr(SweepRun, "job", quick_job("pass"))
    said = []
    assert run_all(sweep.runs[:1], 1, None, said.append) == Outcome(failed=1)
    assert "failed without a result" in said[0]


def test_when_the_time_is_up_runs_are_stopped_and_said_so(sweep, monkeypatch):
    monkeypatch.setattr(SweepRun, "job", quick_job("import time; time.sleep(60)"))
    said = []
    outcome = run_all(sweep.runs, 3, 0.5, said.append)
    assert outcome == Outcome(stopped=3, left=1) and outcome.code == 3
    assert [line.endswith("the time is up") for line in said] == [True] * 3
    assert "3 stopped and 1 not started" in str(outcome)


def test_so_many_jobs_run_at_a_time_and_no_more(tmp_path):
    text = (
        "import pathlib, sys, time; mine = pathlib.Path(sys.argv[1])\n"
        "mine.touch(); time.sleep(0.2); print(len(list(mine.parent.glob('*.on')))); mine.unlink()"
    )
    jobs = [
        Job((sys.executable, "-c", text, str(tmp_path / f"{n}.on")), tmp_path / f"{n}.log") for n in range(5)
    ]
    ended = list(run_jobs(jobs, 2))
    assert [one.code for one in ended] == [0] * 5
    assert {one.job for one in ended} == set(jobs)
    assert max(int(job.log.read_text()) for job in jobs) <= 2


def test_jobs_that_need_each_other_meet(tmp_path):
    text = (
        "import pathlib, sys, time; folder = pathlib.Path(sys.argv[1]); (folder / sys.argv[2]).touch()\n"
        "end = time.time() + float(sys.argv[3])\n"
        "while len(list(folder.glob('*.on'))) < 2 and time.time() < end: time.sleep(0.02)\n"
        "sys.exit(len(list(folder.glob('*.on'))) < 2)"
    )

    def met(parallel, patience):
        folder = tmp_path / str(parallel)
        folder.mkdir()
        arguments = [(str(folder), f"{n}.on", str(patience)) for n in range(2)]
        jobs = [Job((sys.executable, "-c", text, *a), folder / f"{a[1]}.log") for a in arguments]
        return sorted(one.code for one in run_jobs(jobs, parallel))

    assert met(2, 30) == [0, 0]
    assert met(1, 0.2) == [0, 1]


def test_who_stops_listening_stops_the_programs(tmp_path):
    quick = program("pass", tmp_path / "a.log")
    slow = program("import os, time; print(os.getpid(), flush=True); time.sleep(60)", tmp_path / "b.log")
    ends = run_jobs([slow, quick], 2)
    assert next(ends).job == quick
    while not (said := slow.log.read_text()):
        time.sleep(0.05)
    ends.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(said), 0)


def test_a_program_that_will_not_end_is_made_to(tmp_path, monkeypatch):
    monkeypatch.setattr("listenwell.sweeps.run._GRACE", 0.3)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    (ended,) = run_jobs([program(deaf, tmp_path / "deaf.log")], 1, 1.0)
    assert ended.code is None


def test_logs_are_written_on_and_their_end_is_plain(tmp_path):
    log = tmp_path / "x.log"
    for _ in range(2):
        list(run_jobs([program("print('line'); print('\\x1b[2Jred')", log)]))
    assert log.read_text() == "line\n\x1b[2Jred\n" * 2
    assert log_end(log, 3) == " [2Jred\nline\n [2Jred"
    assert log_end(tmp_path / "none.log") == ""


def test_several_share_the_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert threads_each(1, {}) == {}
    assert threads_each(3, {}) == {"OMP_NUM_THREADS": "2"}
    assert threads_each(20, {}) == {"OMP_NUM_THREADS": "1"}
    assert threads_each(3, {"OMP_NUM_THREADS": "5"}) == {}


def test_the_main_metric_is_the_first_that_has_a_column(sweep):
    run = sweep.runs[0]
    finish(run, 1.0, metrics=(("train_seconds", 3.0), ("R@10", 80.0), ("R@1", 45.125), ("length", 9.0)))
    assert main_metric(run.result) == "R@1 45.12"
    finish(run, 1.0, metrics=(("train_seconds", 3.0),))
    assert main_metric(run.result) == "no metric"


def test_another_task_leaves_out_the_sections_of_the_old_one():
    base = {"output": "x", "model": "fasttext", "fasttext": {"dimensions": 4}, "epochs": 2.0}
    assert merged(base, {"model": "planned", "speaker": {"emotions": False}}, TrainRecipe) == {
        "output": "x",
        "model": "planned",
        "epochs": 2.0,
        "planning": {"emotions": False},
    }


def test_a_sweep_trains_and_goes_on(tmp_path):
    text = SWEEP.replace("runs:", 'runs:\n  "bad": {data: {path: nowhere}}')
    file = write_sweep(tmp_path, text.replace("8 numbers", "8 numbers at once"))
    (sweep,) = read_sweeps([file], tmp_path / "runs", limit=11)
    lines = []
    outcome = run_all(select([sweep], ["4 numbers", "bad"], [1]), 2, None, lines.append)
    assert outcome == Outcome(finished=1, failed=1)
    printed = "\n".join(lines)
    assert "sizes: bad, seed 1: failed with exit code 1" in printed
    assert "newsgroups is not here" in printed
    assert re.search(r"\[1/2\] sizes: 4 numbers, seed 1: accuracy \d", printed)
    folder = tmp_path / "runs" / "sizes-limit11" / "4-numbers-seed1"
    result = read_result(folder / "result.json")
    assert (result.task, result.seed) == ("topic", 1)
    assert dict(result.conditions)["vectors"] == "4 dimensions, 16 bits"
    assert "finished" in folder.with_name("4-numbers-seed1.log").read_text()
    lines.clear()
    assert run_all(select([sweep], ["4 numbers"], [1]), 2, None, lines.append) == Outcome(finished=1)
    assert lines == ["1 of 1 runs are finished already"]


def test_neither_running_nor_planning_a_sweep_needs_torch():
    check = (
        "import sys, listenwell.sweeps.run\nassert not {'torch', 'numpy', 'typer', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
