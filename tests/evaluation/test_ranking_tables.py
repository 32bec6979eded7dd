from listenwell.evaluation.report.tables import figure_grids, gap_grid
from listenwell.results.markdown import Grid
from listenwell.results.metric_registry import GROUPS, METRICS, PUBLISHED, Published, metric, units
from listenwell.results.store import Result, natural_order


def ranked(system, task="ranking", **metrics):
    values = tuple(
        (name.replace("_", " ") if "on" in name else name, value) for name, value in metrics.items()
    )
    return Result(task, system, values or (("R@1", 50.0),), "c", "test", 100, "d", checkpoint="c")


def value(system, name, task="ranking"):
    (found,) = [
        entry.value for entry in PUBLISHED if (entry.task, entry.system, entry.metric) == (task, system, name)
    ]
    return found


def test_the_papers_figures_are_those_printed():
    # Zhong et al. 2020, Table 5.
    for corpus, figures in {
        "PEC happy": (36.2, 73.0, 96.9, 48.4),
        "PEC offmychest": (47.0, 79.7, 97.8, 58.0),
        "PEC": (45.1, 80.5, 98.3, 56.7),
    }.items():
        names = ("R@1", "R@10", "R@50", "MRR")
        assert tuple(value(f"{corpus}: CoBERT", name) for name in names) == figures
    # Table 6: trained on the first, tested on the second.
    assert value("happy: CoBERT trained on offmychest", "R@1", "transfer") == 28.8
    assert value("offmychest: CoBERT trained on happy", "R@1", "transfer") == 41.2
    # Table 7.
    assert value("PEC, validation: CoBERT − hop-1", "R@1") == 44.0
    assert value("PEC, validation: BERT+DIM", "time_ratio") == 18.36
    assert value("PEC, validation: Poly-encoder", "memory_ratio") == 1.84
    # Table 8.
    lines = {0: 40.4, 1: 42.0, 2: 42.8, 5: 45.1, 10: 46.2, 20: 47.1}
    for count, figure in lines.items():
        row = f"PEC, validation: {count} sentence{'' if count == 1 else 's'}"
        assert value(row, "R@1", "persona sentences") == figure
    # Rashkin et al. 2019, Table 1.
    assert value("EmpatheticDialogues: BERT, EmoPrepend-1", "R@1") == 66.04
    assert value("EmpatheticDialogues: Transformer, fine-tuned", "R@1") == 56.90


def test_papers_stand_beside_our_row_of_the_same_system():
    beside = {entry.system: entry.beside for entry in PUBLISHED if entry.task == "ranking"}
    assert beside["EmpatheticDialogues: BERT, fine-tuned"] == "EmpatheticDialogues: Bi-encoder"
    assert beside["PEC: CoBERT"] == "Synthetic-Persona-Chat: CoBERT"
    assert beside["PEC, validation: CoBERT, mean for max"] == "Synthetic-Persona-Chat: CoBERT, mean for max"
    assert beside["PEC happy: CoBERT"] == ""


def test_there_is_a_gap_only_on_the_same_corpus():
    ours = [
        ranked("EmpatheticDialogues: Bi-encoder", **{"R@1": 54.0}),
        ranked("Synthetic-Persona-Chat: CoBERT", **{"R@1": 70.0}),
    ]
    shown = {(row[0], row[1]): row[2:5] for row in gap_grid("ranking", ours).rows}
    assert shown["EmpatheticDialogues: BERT, fine-tuned", "R@1 (%)"] == ("54.00", "65.92", "−11.92")
    assert shown["PEC: CoBERT", "R@1 (%)"] == ("70.00", "45.10", "–")
    assert shown["PEC: BoW", "R@1 (%)"] == ("–", "15.40", "–")
    # Who has PEC itself is held against the paper.
    shown = {
        row[0]: row[2:5]
        for row in gap_grid("ranking", [*ours, ranked("PEC: CoBERT")]).rows
        if row[1] == "R@1 (%)"
    }
    assert shown["PEC: CoBERT"] == ("50.00", "45.10", "+4.90")


def test_ranking_tables_have_titles_and_their_columns():
    hard = ranked("PEC: CoBERT", **{"R@1": 50.0, "R@1 unshuffled": 30.0, "time_ratio": 2.0})
    grids = {grid.title: grid for grid in figure_grids("ranking", [hard], ())}
    assert list(grids) == [
        "The true reply among 100 (shuffled pool)",
        "The true reply among its neighbours (unshuffled pool, harder)",
        "Cost of a ranker",
    ]
    assert grids["Cost of a ranker"].columns[-1] == "time (×)"
    assert {METRICS[name].group for name in METRICS} <= set(GROUPS)
    assert METRICS["time_ratio"].better == METRICS["memory_ratio"].better == "lower"


def test_numbers_in_names_are_sorted_by_size():
    names = ["20 sentences", "2 sentences", "10 Sentences", "a", "0 sentences"]
    assert sorted(names, key=natural_order) == [
        "0 sentences",
        "2 sentences",
        "10 Sentences",
        "20 sentences",
        "a",
    ]


def test_rows_without_a_corpus_keep_their_order_before_the_papers():
    ours = [ranked(f"{count} sentences", "persona sentences") for count in (0, 2, 10)]
    (grid, *_) = figure_grids("persona sentences", ours)
    assert isinstance(grid, Grid)
    assert [row[0] for row in grid.rows][:4] == [
        "0 sentences",
        "2 sentences",
        "10 sentences",
        "PEC, validation: 0 sentences",
    ]


def test_a_metric_measured_elsewhere_is_the_same_metric():
    there = metric("R@1 on PEC")
    assert (there.label, there.unit, there.group, there.decimals) == ("R@1 on PEC", "percent", "ranking", 2)
    assert metric("odd on PEC").group == "other"
    assert units(("R@1 on PEC", "odd", "MRR")) == (("R@1 on PEC", "percent"), ("MRR", "percent"))
    (grid,) = figure_grids("transfer", [ranked("trained on A", "transfer", **{"R@1 on A": 50.0})], ())
    assert grid.columns[-1] == "R@1 on A (%)" and grid.rows[0][-1] == "50.00"


def test_a_published_row_of_our_own_name_is_found_without_beside():
    paper = (Published("t", "X: a", "R@1", 40.0, "s", "c"),)
    (row,) = gap_grid("t", [ranked("X: a", "t")], paper).rows
    assert row[4] == "+10.00"
