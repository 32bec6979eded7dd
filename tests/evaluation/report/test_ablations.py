from dataclasses import replace

from listenwell.evaluation.report.page import Report
from listenwell.evaluation.report.tables import _EMPATHY, _REPLIES, ablation_grids, model_ablations
from listenwell.results.store import Result, file_name, write_result


def row(task, system, off=None, seed=0, **metrics):
    said = {"sample": "all 10"} | ({"switched off": off} if off else {})
    return Result(
        *(task, system, tuple(metrics.items()), "c", "test", 10, "d"),
        conditions=tuple(said.items()),
        seed=seed,
        checkpoint="c",
    )


WHOLE = row("replies", "planned", distinct_replies=95.0, stock_phrases=10.0, er_level=0.9)
LESS = row(
    "ablations", "planned without ranker, stock", "ranker, stock", distinct_replies=97.5, stock_phrases=8.0
)


def column(grids, name):
    first, second = grids
    index = (*_REPLIES, *_EMPATHY).index(name)
    at = len(first.columns) - 3
    return (
        [line[3 + index] for line in first.rows]
        if index < at
        else [line[3 + index - at] for line in second.rows]
    )


def ablation_page(tmp_path, results):
    for result in results:
        write_result(result, tmp_path / file_name(result))
    return Report(tmp_path).pages()["results/ablations.md"]


def test_each_part_stands_under_the_whole_with_its_difference():
    grid = ablation_grids([WHOLE, LESS, row("replies", "other", distinct_replies=1.0)])
    assert [line[:3] for line in grid[0].rows] == [
        ("planned", "nothing: the whole listener", "10"),
        ("planned", "ranker, stock phrases", "10"),
    ]
    assert column(grid, "distinct_replies") == ["95.00", "97.50 (+2.50)"]
    assert column(grid, "stock_phrases") == ["10.00", "8.00 (−2.00)"]
    assert column(grid, "er_level") == ["0.900", "–"]
    assert grid[0].columns[3] == "distinct replies (%)"


def test_other_contexts_or_seeds_give_no_difference():
    other = row("ablations", "planned without guard", "guard", seed=1, distinct_replies=90.0)
    assert column(ablation_grids([WHOLE, other]), "distinct_replies") == ["95.00", "90.00"]
    assert column(ablation_grids([other]), "distinct_replies") == ["90.00"]


def test_an_unmoved_figure_is_plus_nothing():
    same = row("ablations", "planned without guard", "guard", distinct_replies=95.001)
    assert column(ablation_grids([WHOLE, same]), "distinct_replies")[1] == "95.00 (+0.00)"


def test_the_page_shows_the_tables_and_the_settings(tmp_path):
    page = ablation_page(tmp_path, [WHOLE, LESS])
    assert page.startswith("# Ablations\n")
    assert "| planned | ranker, stock phrases | 10 | 97.50 (+2.50) |" in page
    assert "switched off: ranker, stock" in page


def rated(system, sheets, overall):
    found = row("ratings", system, rated_overall=overall)
    return replace(found, data=sheets)


def test_what_raters_said_stands_there_if_they_read_the_same_sheets():
    less = "planned without ranker, stock"
    grid = ablation_grids([WHOLE, LESS, rated("planned", "a", 3.25), rated(less, "a", 2.5)])
    assert column(grid, "rated_overall") == ["3.25", "2.50 (−0.75)"]
    grid = ablation_grids([WHOLE, LESS, rated("planned", "a", 3.25), rated(less, "b", 2.5)])
    assert column(grid, "rated_overall") == ["3.25", "–"]


def test_models_without_a_part_have_a_table_of_their_own(tmp_path):
    ranker = row("ablations", "CoBERT − hop-1", **{"R@1": 61.5})
    assert model_ablations([WHOLE, LESS, ranker]) == [ranker]
    assert len(ablation_grids([WHOLE, LESS, ranker])[0].rows) == 2
    page = ablation_page(tmp_path, [WHOLE, LESS, ranker])
    assert "| CoBERT − hop-1 | ours | 10 | 61.50 |" in page
