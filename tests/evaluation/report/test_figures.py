import sys
from dataclasses import replace

import pytest

from listenwell.errors import MissingExtraError
from listenwell.evaluation.report import figures
from listenwell.evaluation.report.figures import FIGURES, draw, figures_of, old_figures
from listenwell.results.drawing import KINDS, STYLE
from listenwell.results.store import Result

NAMES = {name for figure in FIGURES for name in figure.metrics}


def system(name, value, checkpoint=None):
    return Result(
        "replies", name, tuple((m, value) for m in NAMES), "c", "test", 500, "d", checkpoint=checkpoint
    )


SYSTEMS = [
    system("ours", 50.0, "c"),
    system("MoEL", 50.5),
    system("MIME greedy", 51.0),
    system("human", 99.0),
    Result(
        "understanding",
        "dialogue act: annotators",
        (("accuracy", 90.0),),
        "c",
        "test",
        5,
        "d",
        checkpoint="c",
    ),
]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(SYSTEMS, tmp_path_factory.mktemp("figures"))


def test_every_figure_is_written_as_svg_and_png(drawn):
    assert sorted(file.name for file in drawn) == sorted(
        f"{f.name}.{kind}" for f in FIGURES for kind in KINDS
    )
    for file in drawn:
        start = file.read_bytes()[:8]
        assert start.startswith(b"\x89PNG" if file.suffix == ".png" else b"<?xml")


def test_the_same_results_give_the_same_bytes_and_no_date(drawn, tmp_path):
    for file in draw(SYSTEMS, tmp_path):
        assert file.read_bytes() == (drawn[0].parent / file.name).read_bytes()
    assert b"<dc:date>" not in (tmp_path / "likeness.svg").read_bytes()


def test_old_and_missing_figures_are_found_without_drawing(drawn):
    folder = drawn[0].parent
    assert old_figures(SYSTEMS, folder) == []
    changed = [*SYSTEMS[1:], system("ours", 50.001, "c")]
    assert {file.stem for file in old_figures(changed, folder)} == {
        "diversity",
        "variety",
        "likeness",
        "empathy",
    }
    heard = [*SYSTEMS[:-1], replace(SYSTEMS[-1], spreads=(("accuracy", 1.0),))]
    assert {file.stem for file in old_figures(heard, folder)} == {"understanding"}
    assert len(old_figures(SYSTEMS, folder / "nowhere")) == len(drawn)
    without_people = [row for row in SYSTEMS if row.system != "human"]
    assert {file.stem for file in old_figures(without_people, folder)} == {
        "diversity",
        "variety",
        "empathy",
    }


def test_systems_without_the_figures_are_left_out():
    generic_question = Result("replies", "few", (("bleu_average", 1.0),), "c", "test", 3, "d")
    assert figures_of([generic_question]) == []
    other = Result("perplexity", "x", SYSTEMS[0].metrics, "c", "test", 3, "d")
    assert figures_of([other]) == []


def test_labels_cover_neither_points_nor_each_other():
    import matplotlib

    with matplotlib.rc_context(STYLE):
        canvas = figures._scatter(FIGURES[0], SYSTEMS)
    (panel,) = canvas.axes
    boxes = [text.get_window_extent() for text in panel.texts]
    assert [text.get_text() for text in panel.texts] == [row.system for row in SYSTEMS]
    assert not any(a.overlaps(b) for place, a in enumerate(boxes) for b in boxes[place + 1 :])
    assert all(panel.bbox.x0 < box.x0 and box.x1 < panel.bbox.x1 for box in boxes)


def test_without_matplotlib_the_install_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"listenwell\[plots\]"):
        draw(SYSTEMS, tmp_path)


def test_a_sample_of_a_system_is_not_drawn_beside_all_of_it():
    part = replace(system("ours, 20 contexts", 40.0, "c"), count=20)
    likeness = next(figure for figure in FIGURES if figure.name == "likeness")
    drawn = [row.system for row in likeness.rows([*SYSTEMS, part])]
    assert "ours" in drawn and "ours, 20 contexts" not in drawn
    assert [row.system for row in likeness.rows([part])] == ["ours, 20 contexts"]
