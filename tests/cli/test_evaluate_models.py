import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import CheckpointError
from listenwell.rankers.ensemble import Ensemble, load_scorer
from listenwell.results.store import read_result
from tests.rankers.many_talks import write_talks
from tests.rankers.tiny_rankers import keep_ranker, tiny_ranker
from tests.tiny import keep_ear, tiny_ear

WRITTEN = Path("runs/evaluate/rankers-empathetic_dialogues-test/rankers/empatheticdialogues-bi.json")


@pytest.fixture
def call(monkeypatch, tmp_path, tiny_encoder, installed_encoder):
    """The command in a folder with rankers `a` and `b` (two seeds of one recipe) and `poly`."""
    write_talks(tmp_path / "data", valid=110, test=210)
    monkeypatch.chdir(tmp_path)
    for name, model, seed in (("a", "bi", 1), ("b", "bi", 2), ("poly", "poly", 1)):
        keep_ranker(tiny_ranker(tiny_encoder, model, seed=seed)[0], tmp_path / name)
    monkeypatch.setattr("listenwell.rankers.ranker.SHIPPED", tmp_path / "a")
    runner = CliRunner()

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["listenwell", *map(str, arguments)])
        return runner.invoke(app, list(map(str, arguments)))

    return run


def test_a_ranker_is_measured_end_to_end(call, tmp_path):
    done = call("evaluate", "rankers", "--ranker", "a", "--limit", 1)
    assert done.exit_code == 0, done.exception
    result = read_result(WRITTEN)
    assert (result.task, result.system, result.count) == ("ranking", "EmpatheticDialogues: bi", 100)
    assert set(dict(result.metrics)) == {"R@1", "R@10", "R@50", "MRR"}
    assert result.command == "listenwell evaluate rankers --ranker a --limit 1"
    shown = " ".join(done.stdout.split())
    assert "EmpatheticDialogues: bi · empathetic_dialogues test · 100 replies" in shown
    assert f"{result.metric('R@1'):.2f}" in shown and "the true reply is ranked first of 100" in shown
    assert "sample: the first pool" in shown
    assert done.stderr.strip() == f"Written to {WRITTEN.parent.parent}."
    assert str(tmp_path) not in WRITTEN.read_text()
    assert len(list(Path("runs/scores").rglob("*.npy"))) == 1


def test_the_shipped_one_is_measured_where_none_is_named(call):
    shipped = call("evaluate", "rankers", "--limit", 1, "--json")
    named = call("evaluate", "rankers", "--limit", 1, "--json", "--ranker", "a")
    assert shipped.exit_code == named.exit_code == 0
    one, two = json.loads(shipped.stdout), json.loads(named.stdout)
    assert one["checkpoint"] == two["checkpoint"] and one["metrics"] == two["metrics"]


def test_seeds_are_one_row_that_can_be_named_and_kept(call):
    options = [
        "--ranker",
        "a",
        "--ranker",
        "b",
        "--system",
        "Bi-encoder",
        "--out",
        "here",
        "--keep",
        "results",
    ]
    done = call("evaluate", "rankers", *options, "--json")
    assert done.exit_code == 0, done.exception
    name = "rankers/empatheticdialogues-bi-encoder.json"
    result = read_result(Path("results") / name)
    assert read_result(Path("here") / name) == result
    assert json.loads(done.stdout)["metrics"] == dict(result.metrics)
    assert (result.system, result.count) == ("EmpatheticDialogues: Bi-encoder", 200)
    assert len(result.metrics) == len(result.spreads) == 8
    assert dict(result.conditions)["models"] == "2, of different seeds"
    alone = [
        json.loads(call("evaluate", "rankers", "--ranker", folder, "--json").stdout)["metrics"]["MRR"]
        for folder in "ab"
    ]
    assert result.metric("MRR") == pytest.approx(sum(alone) / 2)
    assert done.stderr.strip() == "Written to here."


def test_another_split_and_place_are_measured(call, tmp_path):
    elsewhere = write_talks(tmp_path / "elsewhere", "0", valid=130)
    done = call("evaluate", "rankers", "--split", "valid", "--path", elsewhere, "--json")
    plain = call("evaluate", "rankers", "--split", "valid", "--json")
    first, other = json.loads(done.stdout), json.loads(plain.stdout)
    assert first["split"] == other["split"] == "valid" and first["count"] == 100
    assert first["data"] != other["data"]
    assert Path("runs/evaluate/rankers-empathetic_dialogues-valid").is_dir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rankers", "--ranker", "none"), "none is not a listenwell checkpoint: there is no such folder"),
        (("rankers", "--ranker", "a", "--ranker", "a"), "The same ranker is given twice"),
        (("rankers", "--ranker", "a", "--ranker", "poly"), "not of one recipe: bi; poly"),
        (("rankers", "--corpus", "empathetic_dialogs"), "Did you mean 'empathetic_dialogues'"),
        (("rankers", "--split", "tset"), "Did you mean 'test'"),
        (("rankers", "--split", "train"), "corpus download empathetic_dialogues"),
    ],
)
def test_errors_say_what_to_do(call, arguments, message):
    done = call("evaluate", *arguments)
    assert message in str(done.exception)
    assert not Path("runs").exists()


def test_a_checkpoint_of_another_kind_is_named(call, tmp_path, tiny_encoder):
    keep_ear(tiny_ear(tiny_encoder, ["emotion"]), tmp_path / "classifier")
    done = call("evaluate", "rankers", "--ranker", "classifier")
    assert isinstance(done.exception, CheckpointError)
    assert "classifier holds a 'classifier' checkpoint, not 'ranker'" in str(done.exception)


def test_no_pools_are_no_number(call):
    assert call("evaluate", "rankers", "--limit", 0).exit_code == 2
    assert call("ensemble", "a", "poly", "--out", "both", "--pools", 0).exit_code == 2


def test_rankers_are_joined_and_measured(call):
    done = call("ensemble", "a", "poly", "--out", "both", "--pools", 1)
    assert done.exit_code == 0, done.exception
    ensemble = load_scorer(Path("both"))
    assert isinstance(ensemble, Ensemble)
    lines = done.stdout.splitlines()
    assert lines == [f"{ensemble.weights[0]:10.4f}  a", f"{ensemble.weights[1]:10.4f}  poly"]
    assert done.stderr.strip() == "Written to both."
    measured = call("evaluate", "rankers", "--ranker", "both", "--limit", 1, "--json")
    conditions = json.loads(measured.stdout)["conditions"]
    assert conditions["members"] == "bi, poly"
    assert conditions["weights, mean"] == ", ".join(f"{weight:.4g}" for weight in ensemble.weights)
    again = call("ensemble", "a", "poly", "--out", "both", "--json")
    assert json.loads(again.stdout) == {
        "ensemble": "both",
        "weights": dict(zip(("a", "poly"), ensemble.weights, strict=True)),
    }


def test_a_members_name_is_shown_and_not_obeyed(call):
    Path("a").rename("\x1b[2J")
    shown = call("ensemble", "\x1b[2J", "poly", "--out", "both").stdout
    assert "\x1b" not in shown and "\\x1b[2J" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "poly", "--out", "both", "--split", "test"), "not fitted on the test split"),
        (("a", "../{here}/a", "--out", "both"), "Two members are called alike: a, a"),
        (("a", "poly", "--out", "poly"), "poly is a member, or inside of one"),
        (("a", "none", "--out", "both"), "there is no such folder"),
    ],
)
def test_ensembles_that_cannot_be(call, tmp_path, arguments, message):
    done = call("ensemble", *(part.format(here=tmp_path.name) for part in arguments))
    assert message in str(done.exception)
    assert not Path("both").exists()


def test_members_and_a_place_must_be_given(call):
    assert call("ensemble", "--out", "both").exit_code == 2
    assert call("ensemble", "a").exit_code == 2
