import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import InputError, UnknownNameError
from listenwell.results.store import read_result
from listenwell.sweeps.grid import SweepRun, read_sweeps
from tests.sweeps.sweep_helpers import FAILS_ON_FOUR, SUCCEEDS, finish, quick_job, write_sweep


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SweepRun, "job", quick_job(SUCCEEDS))
    return write_sweep(tmp_path / "sweeps")


def sweep(*arguments):
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def test_a_sweep_is_run_and_aggregated(file, tmp_path):
    done = sweep(file, "--parallel", 2)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "Written: results/topic/4-numbers.json",
        "Written: results/topic/8-numbers.json",
    ]
    assert "[4/4] sizes: " in done.stderr and "sweep: 4 finished\n" in done.stderr
    result = read_result(tmp_path / "results" / "topic" / "8-numbers.json")
    assert (result.metric("accuracy"), dict(result.conditions)["seeds"]) == (15.0, "1, 2")
    assert (tmp_path / "runs" / "sizes" / "8-numbers-seed2" / "result.json").is_file()


def test_one_row_is_run_and_aggregated_alone(file, tmp_path):
    done = sweep(file, "--only", "8 numbers", "--results", "kept")
    assert done.exit_code == 0
    assert [path.name for path in (tmp_path / "kept" / "topic").iterdir()] == ["8-numbers.json"]


def test_after_a_failure_nothing_is_aggregated_unless_a_part_is_wanted(file, tmp_path, monkeypatch):
    monkeypatch.setattr(SweepRun, "job", quick_job(FAILS_ON_FOUR))
    done = sweep(file)
    assert done.exit_code == 1 and done.stdout == ""
    assert "sweep: 2 finished, 2 failed" in done.stderr and "Nothing is aggregated" in done.stderr
    assert "\x1b" not in done.stderr
    done = sweep(file, "--partial")
    assert done.exit_code == 1
    assert done.stdout == "Written: results/topic/8-numbers.json\n"
    assert "missing: sizes: 4 numbers, seed 1, 2" in done.stderr


def test_aggregating_alone_runs_nothing(file, tmp_path, monkeypatch):
    monkeypatch.setattr(SweepRun, "job", quick_job("raise SystemExit(9)"))
    (planned,) = read_sweeps([file])
    done = sweep(file, "--aggregate-only")
    assert isinstance(done.exception, InputError) and "8 numbers, seed 1, 2" in str(done.exception)
    for run in planned.runs:
        finish(run, 30.0)
    done = sweep(file, "--aggregate-only")
    assert done.exit_code == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 2


def test_a_rehearsal_is_aggregated_only_where_it_is_told_to(file, tmp_path):
    done = sweep(file, "--limit", 3)
    assert done.exit_code == 0 and done.stdout == "" and "rehearsal" in done.stderr
    assert not (tmp_path / "results").exists()
    assert (tmp_path / "runs" / "sizes-limit3").is_dir() and not (tmp_path / "runs" / "sizes").exists()
    assert sweep(file, "--limit", 3, "--results", "tried").exit_code == 0
    assert len(list((tmp_path / "tried" / "topic").iterdir())) == 2


def test_when_the_time_is_up_the_exit_code_says_so(file, monkeypatch):
    monkeypatch.setattr(SweepRun, "job", quick_job("import time; time.sleep(60)"))
    done = sweep(file, "--seconds", 0.3, "--seeds", "2")
    assert done.exit_code == 3
    assert "1 stopped and 1 not started as the time was up: the same command goes on" in done.stderr


def test_a_wrong_row_or_seed_is_an_error_before_anything_runs(file, tmp_path):
    assert isinstance(sweep(file, "--only", "9 numbers").exception, UnknownNameError)
    assert isinstance(sweep(file, "--seeds", "1,x").exception, InputError)
    assert isinstance(sweep(file, "--seeds", "5").exception, InputError)
    assert not (tmp_path / "runs").exists()


def test_the_old_names_of_command_and_option_still_work(file):
    (sweep,) = read_sweeps([file])
    for run in sweep.runs:
        finish(run, 30.0)
    done = CliRunner().invoke(app, ["study", str(file), "--gather-only"])
    assert done.exit_code == 0 and "deprecated" in done.stderr
    assert "study" not in CliRunner().invoke(app, ["--help"]).stdout
