import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import InputError
from listenwell.results.provenance import FILE, problem_kinds, read_known, result_problems, row_marks
from listenwell.results.store import Result, write_result

ROOT = Path(__file__).parents[2]


def result(commit="abc", **conditions):
    return Result(
        *("replies", "x", (("rouge_l", 1.0),), "c", "test", 3, "d"),
        conditions=tuple(conditions.items()),
        commit=commit,
    )


@pytest.mark.parametrize(
    ("commit", "kinds"),
    [("abc", []), ("abc-dirty", ["changed_tree"]), ("mixed: a, b", ["several_commits"]), ("", ["no_commit"])],
)
def test_commits_that_do_not_name_the_code_are_refused(tmp_path, commit, kinds):
    write_result(result(commit), tmp_path / "replies" / "x.json")
    assert problem_kinds(json.loads((tmp_path / "replies" / "x.json").read_bytes())) == kinds
    assert len(result_problems(tmp_path)) == len(kinds)


def test_an_edited_result_is_refused(tmp_path):
    file = tmp_path / "replies" / "x.json"
    write_result(result(decoding="greedy"), file)
    assert result_problems(tmp_path) == []
    file.write_text(file.read_text().replace("greedy", "beams"))
    (problem,) = result_problems(tmp_path)
    assert problem.startswith("results/replies/x.json: its settings were not written by the code")


def test_without_a_digest_only_settings_that_the_code_wrote_are_accepted(tmp_path):
    content = result(decoding="greedy").to_dict()
    assert problem_kinds(content) == []
    assert problem_kinds(content | {"conditions": {"engine": "some of them on a GPU"}}) == ["edited"]


def test_known_problems_are_accepted_and_marked(tmp_path):
    write_result(result("abc-dirty"), tmp_path / "replies" / "x.json")
    sound = replace(result(), system="y")
    write_result(sound, tmp_path / "replies" / "y.json")
    entry = "changed_tree:\n  note: a note\n  files: [replies/x.json]\n  same_replies: [replies/y.json]\n"
    (tmp_path / FILE).write_text(entry)
    assert result_problems(tmp_path) == []
    assert row_marks(tmp_path) == {("replies", "x"): "¹", ("replies", "y"): "¹"}
    write_result(result(), tmp_path / "replies" / "x.json")
    assert result_problems(tmp_path) == [f"results/{FILE}: replies/x.json is no longer changed_tree"]
    (tmp_path / FILE).write_text("odd:\n  note: a note\n  files: []\n")
    with pytest.raises(InputError, match="unknown kind 'odd'"):
        read_known(tmp_path)


def test_the_repositorys_results_have_only_known_problems():
    assert result_problems(ROOT / "results") == []
    counts = {known.kind: len(known.files) for known in read_known(ROOT / "results")}
    assert counts == {"changed_tree": 17, "several_commits": 11, "no_commit": 1, "edited": 1}


def test_the_command_refuses_a_new_problem(tmp_path):
    write_result(result("abc-dirty"), tmp_path / "results" / "replies" / "x.json")
    arguments = ["--results", str(tmp_path / "results"), "--docs", str(tmp_path / "docs")]
    assert CliRunner().invoke(app, ["results", *arguments]).exit_code == 0
    done = CliRunner().invoke(app, ["results", "--check", *arguments])
    assert done.exit_code == 1 and "uncommitted changes" in done.stderr
