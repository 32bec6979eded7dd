import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app
from listenwell.errors import InputError
from listenwell.evaluation.report.page import page_problems, settings_text
from listenwell.evaluation.report.tables import figure_grids, gap_grid, sources, tasks
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import METRICS, PUBLISHED, Published, metric
from listenwell.results.store import Result, read_result, read_results, write_result

ROOT = Path(__file__).parents[3]


def result(system="MoEL", checkpoint=None, **changes):
    values = {
        "task": "replies",
        "system": system,
        "metrics": (("bleu_4", 2.789), ("distinct_1", 0.6249)),
        "corpus": "empathetic_dialogues",
        "split": "test",
        "count": 5255,
        "data": "d" * 64,
        "conditions": (("decoding", "greedy"), ("words", "our own")),
        "checkpoint": checkpoint,
        "command": "listenwell evaluate prompted",
        "time": "2026-01-02T03:04:05Z",
    }
    return Result(**(values | changes))


PAPER = (
    Published("replies", "MoEL", "bleu_4", 2.80, "a paper", "its conditions"),
    Published("replies", "Other", "distinct_1", 3.6, "another", "others"),
)


def test_docs_and_result_files_agree():
    assert page_problems(ROOT / "results", ROOT / "docs") == []


def test_a_changed_number_is_found(tmp_path):
    shutil.copytree(ROOT / "results", tmp_path / "results")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    arguments = [
        "results",
        "--check",
        "--results",
        str(tmp_path / "results"),
        "--docs",
        str(tmp_path / "docs"),
    ]
    runner = CliRunner()
    assert runner.invoke(app, arguments).exit_code == 0
    file = tmp_path / "results" / "replies" / "moel.json"
    known = read_result(file)
    figures = dict(known.metrics)
    write_result(
        replace(known, metrics=tuple((figures | {"rouge_l": figures["rouge_l"] + 0.01}).items())), file
    )
    done = runner.invoke(app, arguments)
    assert done.exit_code == 1
    assert "docs/results/replies.md disagrees with the result files" in done.stderr
    assert "docs/results/ratings.md" not in done.stderr
    assert "likeness.svg was drawn from other results" in done.stderr
    assert "variety.svg" not in done.stderr


def test_the_command_writes_the_pages(tmp_path):
    write_result(result(), tmp_path / "results" / "replies-moel.json")
    arguments = ["results", "--results", str(tmp_path / "results"), "--docs", str(tmp_path / "docs")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    page = (tmp_path / "docs" / "results" / "replies.md").read_text()
    assert "| MoEL | baseline | 5,255 | 2.79 |" in page
    assert page_problems(tmp_path / "results", tmp_path / "docs") == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="--results"):
        read_results(tmp_path / "nowhere")


def test_a_damaged_result_is_named(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(InputError, match=r"x\.json: .* lacks the field"):
        read_results(tmp_path)


def test_rows_stand_in_one_order_whatever_the_files_are_called(tmp_path):
    systems = [("human", None), ("b", None), ("A", None), ("z ours", "c" * 64)]
    for number, (system, checkpoint) in enumerate(systems):
        write_result(result(system, checkpoint), tmp_path / f"{number}.json")
    (likeness, variety) = figure_grids("replies", read_results(tmp_path), PAPER)
    assert [row[:2] for row in likeness.rows] == [
        ("z ours", "ours"),
        ("A", "baseline"),
        ("b", "baseline"),
        ("people", "people"),
        ("MoEL", "paper"),
    ]
    assert variety.rows[-1][:2] == ("Other", "paper")


def test_figures_are_rounded_and_their_units_are_in_the_heading():
    (likeness, variety) = figure_grids("replies", [result()], PAPER)
    assert likeness.columns == ("system", "source", "n", "BLEU-4 (%)")
    assert likeness.rows[0] == ("MoEL", "baseline", "5,255", "2.79")
    assert variety.rows == (("MoEL", "baseline", "5,255", "0.62"), ("Other", "paper", "–", "3.60"))


def test_the_gap_stands_where_the_same_system_was_measured():
    rows = gap_grid("replies", [result()], PAPER).rows
    assert rows[0][2:] == ("2.79", "2.80", "−0.01", "[1]")
    assert sources("replies", PAPER) == ["a paper: its conditions", "another: others"]
    assert rows[1][2:5] == ("–", "3.60", "–")
    (up,) = gap_grid("replies", [result(metrics=(("bleu_4", 2.9),))], PAPER[:1]).rows
    (none,) = gap_grid("replies", [result(metrics=(("bleu_4", 2.7999),))], PAPER[:1]).rows
    assert (up[4], none[4]) == ("+0.10", "0.00")


def test_settings_that_all_rows_share_stand_once():
    rows = [
        result(checkpoint="c" * 64, seed=3, commit="abc", machine="m"),
        result("MIME", conditions=(("decoding", "greedy"), ("words", "their <own>"))),
    ]
    assert settings_text(rows).splitlines() == [
        "<details><summary>2 rows</summary>",
        *("", "**Shared by all rows**", "", "- decoding: greedy", ""),
        *("**MoEL**", ""),
        "- empathetic_dialogues test, data dddddddddddd, checkpoint cccccccccccc, seed 3",
        "- commit abc, m, 2026-01-02",
        "- `listenwell evaluate prompted`",
        *("- words: our own", ""),
        *("**MIME**", ""),
        "- empathetic_dialogues test, data dddddddddddd",
        "- commit unknown, , 2026-01-02",
        "- `listenwell evaluate prompted`",
        *("- words: their &lt;own>", ""),
        "</details>",
    ]


def test_a_system_measured_against_itself_is_marked():
    own = result("human", conditions=(("reference", "itself"),))
    (likeness, variety) = figure_grids("replies", [own], ())
    assert (likeness.rows[0][0], variety.rows[0][0]) == ("people †", "people")


def test_a_metric_nobody_described_is_shown_in_its_own_unit():
    odd = result(task="speed", metrics=(("words_a_second", 12.0),), units=(("words_a_second", "words/s"),))
    (grid,) = figure_grids("speed", [odd], ())
    assert grid.columns[-1] == "words a second (words/s)"
    assert grid.rows[0][-1] == "12.00"
    assert tasks([odd], ()) == ["speed"]


def test_text_in_a_cell_cannot_leave_it():
    grid = Grid("t", ("a", "b"), (("x|y\n| z", "<b>"),), frozenset({1}))
    assert grid.markdown() == "| a | b |\n| --- | ---: |\n| x\\|y \\| z | &lt;b> |\n"


def test_published_numbers_are_of_known_metrics_and_say_their_conditions():
    for entry in PUBLISHED:
        assert entry.metric in METRICS, entry
        assert entry.source and entry.conditions
    seen = [(entry.task, entry.system, entry.metric) for entry in PUBLISHED]
    assert len(set(seen)) == len(seen)


def test_what_was_not_measured_is_a_dash():
    assert metric("bleu_4").show(None) == "–"
    assert metric("vader").show(-0.25) == "−0.250"


def test_the_rows_of_the_baselines_are_there_with_every_reply_metric():
    rows = {row.system: row for row in read_results(ROOT / "results") if row.task == "replies"}
    systems = {"Transformer", "Transformer multitask", "MoEL", "MoEL oracle emotion"}
    systems |= {"MIME greedy", "MIME beam", "MIME top-k", "human"}
    assert systems <= set(rows)
    for system in systems:
        assert rows[system].count == 5255
        for name, known in METRICS.items():
            assert (
                known.group not in ("overlap", "diversity", "sentiment")
                or rows[system].metric(name) is not None
            ), (system, name)


def test_no_result_holds_a_place_on_a_machine():
    for file in (ROOT / "results").rglob("*.json"):
        assert not any(f'"{start}' in file.read_text() or f" {start}" in file.read_text()
                       for start in ("/home/", "/tmp/", "/work/", "/root/", "/Users/")), file  # fmt: skip


@pytest.mark.data
def test_our_code_gives_the_figures_that_the_released_files_are_known_by():
    rows = {row.system: row for row in read_results(ROOT / "results") if row.task == "replies"}
    for system, name, value, slack in (
        ("MIME beam", "distinct_replies", 14.6, 0.1),
        ("MIME beam", "sorry_to_hear", 54.7, 0.1),
        ("MoEL", "distinct_replies", 37.9, 0.1),
        ("MoEL", "sorry_to_hear", 32.7, 0.1),
        ("human", "distinct_replies", 99.0, 0.1),
        ("MIME greedy", "distinct_1", 0.32, 0.01),
        ("MIME greedy", "distinct_2", 1.24, 0.01),
        ("MoEL", "distinct_1", 0.62, 0.02),
        ("MoEL", "distinct_2", 2.89, 0.02),
        ("human", "distinct_1", 6.04, 0.1),
        ("human", "distinct_2", 36.87, 0.1),
    ):
        assert rows[system].metric(name) == pytest.approx(value, abs=slack), (system, name)
