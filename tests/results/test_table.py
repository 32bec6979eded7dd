import importlib.util
from pathlib import Path

import pytest

from listenwell.results import load
from listenwell.results.store import Result, file_name, read_results, source, write_result

ROOT = Path(__file__).parents[2]
ROW = Result(
    *("planning", "CM → DA", (("da_first", 40.0), ("cm_exact", 50.0)), "c", "test", 3, "d"),
    spreads=(("da_first", 1.5),),
    units=(("da_first", "percent"),),
    conditions=(("decoding", "greedy"),),
    checkpoint="c",
    commit="abc",
)


def test_a_result_is_written_to_the_folder_of_its_task(tmp_path):
    assert file_name(ROW) == "factor_prediction/cm-to-da.json"
    write_result(ROW, tmp_path / file_name(ROW))
    assert read_results(tmp_path) == [ROW]


def test_the_flat_layout_of_earlier_releases_is_read_too(tmp_path):
    write_result(ROW, tmp_path / "planning-cm-to-da.json")
    assert read_results(tmp_path) == [ROW]


def test_the_repositorys_files_lie_where_new_ones_would():
    for file in (ROOT / "results").glob("*/*.json"):
        (result,) = [
            row for row in read_results(file.parent) if file_name(row) == f"{file.parent.name}/{file.name}"
        ]
        assert result


def test_without_pandas_rows_are_dicts(tmp_path, monkeypatch):
    write_result(ROW, tmp_path / "x.json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    second, first = load(tmp_path)  # metrics are sorted by name
    assert (first["metric"], first["value"], first["spread"], first["unit"]) == (
        "da_first",
        40.0,
        1.5,
        "percent",
    )
    assert first["settings"] == {"decoding": "greedy"} and first["source"] == "ours"
    assert (second["metric"], second["spread"]) == ("cm_exact", None)


def test_with_pandas_rows_are_a_data_frame():
    pandas = pytest.importorskip("pandas")
    table = load(ROOT / "results")
    assert isinstance(table, pandas.DataFrame)
    people = table[
        (table.task == "replies") & (table.system == "human") & (table.metric == "distinct_replies")
    ]
    assert people.value.item() == pytest.approx(99.0, abs=0.1)  # the released file's known share
    assert set(table.source) == {"ours", "baseline", "people"}


def test_sources_are_known_by_checkpoint_and_name():
    def row(system, checkpoint=None):
        return Result("reply_filter", system, (), "c", "test", 3, "d", checkpoint=checkpoint)

    assert source(row("x", "c")) == source(row("planned: speaker")) == "ours"
    assert source(row("human")) == source(row("human, the ablations' contexts")) == "people"
    assert source(row("MoEL")) == "baseline"
