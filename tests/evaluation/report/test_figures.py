import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest

from listenwell.errors import MissingExtraError
from listenwell.evaluation.report import charts, ranking_figures
from listenwell.evaluation.report.figures import FIGURES, draw, figures_of, old_figures
from listenwell.results.drawing import KINDS, STYLE
from listenwell.results.store import Result, read_results

ROOT = Path(__file__).parents[3]
BY_NAME = {figure.name: figure for figure in FIGURES}
REPLY_METRICS = {name for figure in FIGURES if figure.task == "replies" for name in figure.metrics}


def row(task, system, checkpoint="c", spreads=(), **metrics):
    return Result(
        *(task, system, tuple(metrics.items()), "synthetic_persona_chat", "test", 500, "d"),
        spreads=tuple(spreads),
        checkpoint=checkpoint,
    )


def system(name, value, checkpoint=None):
    return row("replies", name, checkpoint, **dict.fromkeys(REPLY_METRICS, value))


SYSTEMS = [
    system("ours", 50.0, "c"),
    system("MoEL", 50.5),
    system("MIME greedy", 51.0),
    system("human", 99.0),
    row("understanding", "dialogue act: annotators", accuracy=90.0),
]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(SYSTEMS, tmp_path_factory.mktemp("figures"))


def canvas_of(name, rows):
    figure = BY_NAME[name]
    with matplotlib.rc_context(STYLE):
        return figure.canvas(figure.rows(rows), figure.metrics)


def test_every_figure_is_written_as_svg_and_png(drawn):
    names = ("diversity", "variety", "likeness", "empathy", "understanding")
    assert sorted(file.name for file in drawn) == sorted(f"{name}.{kind}" for name in names for kind in KINDS)
    for file in drawn:
        assert file.read_bytes().startswith(b"\x89PNG" if file.suffix == ".png" else b"<?xml")


def test_the_same_results_give_the_same_bytes_and_no_date(drawn, tmp_path):
    for file in draw(SYSTEMS, tmp_path):
        assert file.read_bytes() == (drawn[0].parent / file.name).read_bytes()
    assert b"<dc:date>" not in (tmp_path / "likeness.svg").read_bytes()


def test_old_and_missing_figures_are_found_without_drawing(drawn):
    folder = drawn[0].parent

    def old(results):
        return {file.stem for file in old_figures(results, folder)}

    assert old(SYSTEMS) == set()
    changed = [system("ours", 50.001, "c"), *SYSTEMS[1:]]
    assert old(changed) == {"diversity", "variety", "likeness", "empathy"}
    spread = [*SYSTEMS[:-1], replace(SYSTEMS[-1], spreads=(("accuracy", 1.0),))]
    assert old(spread) == {"understanding"}
    assert len(old_figures(SYSTEMS, folder / "nowhere")) == len(drawn)
    # People's replies are their own reference: their overlap is not drawn.
    assert old([row for row in SYSTEMS if row.system != "human"]) == {"diversity", "variety", "empathy"}


def test_rows_without_the_metrics_are_left_out():
    assert figures_of([row("replies", "few", vader=1.0)]) == []
    assert figures_of([replace(SYSTEMS[0], task="perplexity")]) == []


def test_a_sample_of_a_system_is_not_drawn():
    sample = system("ours, 20 contexts", 40.0, "c")
    assert sample not in BY_NAME["likeness"].rows([*SYSTEMS, sample])


def test_labels_cover_neither_points_nor_each_other():
    (panel,) = canvas_of("diversity", SYSTEMS).axes
    boxes = [text.get_window_extent() for text in panel.texts]
    assert [text.get_text() for text in panel.texts] == ["ours", "MoEL", "MIME greedy", "people"]
    assert not any(a.overlaps(b) for index, a in enumerate(boxes) for b in boxes[index + 1 :])
    assert all(panel.bbox.x0 < box.x0 and box.x1 < panel.bbox.x1 for box in boxes)


def test_without_matplotlib_the_install_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"listenwell\[plots\]"):
        draw(SYSTEMS, tmp_path)


def test_published_numbers_stand_beside_our_row_of_the_same_system():
    bi = row("ranking", "Synthetic-Persona-Chat: Bi-encoder", **{"R@1": 60.0})
    assert charts.published_beside(bi, "R@1") == [("PEC", "Bi-encoder", 42.3)]  # test before validation
    dam = row("ranking", "Synthetic-Persona-Chat: BERT+DAM", **{"R@1": 60.0})
    assert charts.published_beside(dam, "R@1") == [("PEC, validation", "BERT+DAM", 45.0)]
    gold = row("family", "+CM, gold factors", perplexity_by_token=12.0)
    assert [value for *_, value in charts.published_beside(gold, "perplexity_by_token")] == [18.21, 21.44]


def test_bars_stand_by_corpus_the_best_first():
    rows = [
        row("ranking", "EmpatheticDialogues: BoW", **{"R@1": 20.0}),
        row("ranking", "EmpatheticDialogues: Bi-encoder", spreads=[("R@1", 1.0)], **{"R@1": 55.0}),
        row("ranking", "Synthetic-Persona-Chat: BoW", **{"R@1": 10.0}),
    ]
    first, second = canvas_of("rankers", rows).axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["Bi-encoder", "BoW"]
    assert second.get_title(loc="left") == "Synthetic-Persona-Chat"
    assert {text.get_text() for text in first.texts} == {"55.00", "20.00"}


def test_lines_hold_every_number_of_persona_sentences():
    rows = [row("persona sentences", f"{count} sentences", **{"R@1": 60.0 + count}) for count in (0, 2, 5)]
    rows.append(row("persona sentences", "5 sentences, together", **{"R@1": 70.0}))
    (panel,) = canvas_of("persona_sentences", rows).axes
    assert list(panel.get_xticks()) == [0, 1, 2, 5, 10, 20]
    texts = [text.get_text() for text in panel.texts]
    assert texts[:4] == ["60.0", "62.0", "65.0", "70.0"] and "47.1" in texts


def test_the_gain_of_a_persona_is_named():
    rows = [
        row("swapped share", f"{share} % swapped, {count} sentences", **{"R@1": 50.0 + count / 10})
        for share in (0, 100)
        for count in (0, 10)
    ]
    (panel,) = canvas_of("swapped_share", rows).axes
    assert [text.get_text() for text in panel.texts] == ["+1.0", "+1.0"]
    assert ranking_figures._measured(rows) == ["R@1"]


def test_the_heat_map_has_the_training_corpus_on_the_diagonal():
    rows = [
        row("transfer", f"trained on {corpus}", **{"R@1 on A": value, "R@1 on B": 50.0})
        for corpus, value in (("B", 10.0), ("A", 60.0), ("both", 55.0))
    ]
    ours, paper = canvas_of("transfer", rows).axes
    labels = [
        [label.get_text() for label in axis] for axis in (ours.get_yticklabels(), ours.get_xticklabels())
    ]
    assert labels == [["B", "A", "both"], ["B", "A"]]
    assert len(paper.texts) == 9


def test_the_repositorys_figures_can_be_drawn():
    results = read_results(ROOT / "results")
    assert [figure.name for figure in figures_of(results)] == [figure.name for figure in FIGURES]
    assert len(canvas_of("family", results).axes) == 3
