from dataclasses import replace

import matplotlib
import pytest

from listenwell.evaluation.report import ranking_figures as module
from listenwell.evaluation.report.figures import draw, figures_of, old_figures
from listenwell.evaluation.report.page import results_page
from listenwell.evaluation.report.ranking_figures import FIGURES, papers_beside
from listenwell.evaluation.report.ranking_study_figures import (
    PAPER,
    _wrapped,
    across_corpora,
    by_sentences,
    by_share,
)
from listenwell.results.drawing import KINDS, STYLE
from listenwell.results.store import Result

ED, SPC = "EmpatheticDialogues", "Synthetic-Persona-Chat"


def row(task, system, spread=0.5, **metrics):
    values = tuple(metrics.items())
    spreads = tuple((name, spread) for name in metrics) if spread else ()
    return Result(
        *(task, system, values, "synthetic_persona_chat", "test", 100, "d"), spreads=spreads, checkpoint="c"
    )


RANKERS = [
    row("ranking", f"{corpus}: {system}", **{"R@1": value})
    for corpus, system, value in (
        (ED, "Bi-encoder", 53.5),
        (ED, "Bi-encoder with EmoPrepend-1", 54.0),
        (ED, "BoW", 2.5),
        (SPC, "CoBERT", 66.0),
        (SPC, "CoBERT, mean for max", 64.0),
    )
]
SENTENCES = [
    row("persona sentences", f"{count} sentence{'' if count == 1 else 's'}", **{"R@1": value})
    for count, value in ((10, 64.0), (0, 55.0), (1, 58.0))
]
SHARES = [
    row(
        "swapped share",
        f"{share} % swapped, {count} sentences",
        **{"R@1": 60.0 - 0.2 * share + gain, f"R@1 on {ED}": 30.0 + 0.2 * share},
    )
    for share in (0, 50, 100)
    for count, gain in ((0, 0.0), (10, 5.0 - 0.03 * share))
]
TRANSFER = [
    row("transfer", "trained on both", **{f"R@1 on {ED}": 52.0}),
    row("transfer", f"trained on {SPC}", **{f"R@1 on {SPC}": 66.0, f"R@1 on {ED}": 31.0}),
]
ROWS = [*RANKERS, *SENTENCES, *SHARES, *TRANSFER]


def laid_out(canvas):
    with matplotlib.rc_context(STYLE):
        canvas.draw_without_rendering()
    return canvas


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(ROWS, tmp_path_factory.mktemp("figures"))


def test_every_figure_is_written_and_stands_on_the_page(drawn):
    names = ("rankers", "persona_sentences", "swapped_share", "transfer")
    assert tuple(figure.name for figure in FIGURES) == names
    assert [file.name for file in drawn] == [f"{name}.{kind}" for name in names for kind in KINDS]
    page = results_page(ROWS)
    for figure in FIGURES:
        assert page.count(f"(figures/{figure.name}.svg)") == 1
        assert page.index(f"figures/{figure.name}.svg") > page.index("## Ranking")


def test_figures_are_old_when_what_they_show_has_changed(drawn):
    folder = drawn[0].parent
    assert old_figures(ROWS, folder) == []
    for place, changed, name in (
        (0, row("ranking", f"{ED}: Bi-encoder", **{"R@1": 53.6}), "rankers"),
        (0, row("ranking", f"{ED}: Bi-encoder", 0.6, **{"R@1": 53.5}), "rankers"),
        (len(ROWS) - 1, row("transfer", f"trained on {SPC}", **{f"R@1 on {SPC}": 66.1}), "transfer"),
    ):
        rows = [*ROWS[:place], changed, *ROWS[place + 1 :]]
        assert {file.stem for file in old_figures(rows, folder)} == {name}


def test_rows_that_do_not_belong_are_left_out():
    odd = [
        row("ranking", "no corpus", **{"R@1": 1.0}),
        row("ranking", f"{ED}: BoW", **{"MRR": 1.0}),
        row("persona sentences", "some sentences", **{"R@1": 1.0}),
        row("swapped share", "25 % swapped", **{"R@1": 1.0}),
        row("transfer", "trained on A", **{"R@1": 1.0}),
        row("replies", f"{ED}: BoW", **{"R@1": 1.0}),
    ]
    assert figures_of(odd) == []


def test_papers_are_found_for_a_row_and_its_corpus():
    assert papers_beside(RANKERS[0]) == [(65.92, True)]
    assert papers_beside(RANKERS[1]) == [(66.04, True)]
    assert papers_beside(RANKERS[2]) == []
    # The test split's figure, 45.1, and not the validation split's, 46.2; an ablation has only that.
    assert papers_beside(RANKERS[3]) == [(45.1, False)]
    assert papers_beside(RANKERS[4]) == [(44.1, False)]
    assert papers_beside(row("ranking", "PEC: CoBERT", **{"R@1": 1.0})) == [(45.1, True)]


def test_bars_spreads_and_marks_are_the_figures():
    canvas = laid_out(module.by_corpus(RANKERS))
    first, second = canvas.axes
    assert [panel.get_title(loc="left") or panel.get_title() for panel in (first, second)] == [ED, SPC]
    assert [bar.get_width() for bar in first.patches] == [54.0, 53.5, 2.5]
    assert [label.get_text() for label in first.get_yticklabels()] == [
        "Bi-encoder with EmoPrepend-1",
        "Bi-encoder",
        "BoW",
    ]
    marks = [
        [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "D"] for panel in (first, second)
    ]
    assert marks == [[66.04, 65.92], [45.1, 44.1]]
    (segment,) = first.containers[1][2][0].get_segments()
    assert segment[:, 0].tolist() == [53.5, 54.5]
    assert [text.get_text() for text in first.texts] == ["54.0", "53.5", "2.5"]
    assert [text.get_color() for text in first.texts] == ["white", "white", "black"]
    legend = [text.get_text() for text in canvas.legends[0].get_texts()]
    assert len(legend) == 3 and "another corpus" in legend[2]


def test_bars_are_alike_in_every_panel():
    panels = module.by_corpus(RANKERS).axes
    assert panels[0].get_ylim() == panels[1].get_ylim() and panels[0].get_xlim() == panels[1].get_xlim()
    (alone,) = module.by_corpus(RANKERS[:3]).axes
    assert [text.get_text() for text in alone.get_yticklabels()][-1] == "BoW"


def test_persona_sentences_are_sorted_by_their_number():
    canvas = laid_out(by_sentences(SENTENCES))
    (panel,) = canvas.axes
    ours = panel.containers[0][0]
    assert (list(ours.get_xdata()), list(ours.get_ydata())) == ([0, 1, 10], [55.0, 58.0, 64.0])
    theirs = next(line for line in panel.lines if line.get_color() == PAPER)
    assert list(theirs.get_ydata()) == [40.4, 42.0, 42.8, 45.1, 46.2, 47.1]
    assert list(panel.get_xticks()) == [0, 1, 2, 5, 10, 20]
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        f"ours, {SPC}",
        "CoBERT's paper, PEC, validation",
    ]


def test_context_and_persona_together_are_a_line_of_their_own():
    rows = [
        *SENTENCES,
        row("persona sentences", "10 sentences, together", **{"R@1": 66.0}),
        row("persona sentences", "1 sentence, together", **{"R@1": 59.0}),
    ]
    canvas = laid_out(by_sentences(rows))
    (panel,) = canvas.axes
    plain, together = (held[0] for held in panel.containers)
    assert list(plain.get_ydata()) == [55.0, 58.0, 64.0]
    assert (list(together.get_xdata()), list(together.get_ydata())) == ([0, 1, 10], [55.0, 59.0, 66.0])
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == [
        f"ours, {SPC}",
        f"ours, {SPC}, hop 0 of both together",
        "CoBERT's paper, PEC, validation",
    ]


def test_what_persona_gives_is_shaded_and_named():
    first, second = laid_out(by_share(SHARES)).axes
    assert [text.get_text() for text in first.texts] == ["+5.0", "+3.5", "+2.0"]
    assert [text.get_text() for text in second.texts] == ["+0.0"] * 3
    assert [len(panel.collections) >= 1 for panel in (first, second)] == [True, True]
    with_persona, without = (held[0] for held in first.containers)
    assert list(with_persona.get_ydata()) == [65.0, 53.5, 42.0]
    assert list(without.get_ydata()) == [60.0, 50.0, 40.0]
    assert [panel.get_title(loc="left") or panel.get_title() for panel in (first, second)] == [
        f"on {SPC}",
        f"on {ED}",
    ]


def test_figures_of_several_corpora_together_are_not_a_panel():
    swapped = [
        row("swapped share", f"{share} % swapped, {count} sentences", **{"R@1": 1.0, f"R@1 on {ED}": 2.0})
        for share in (0, 100)
        for count in (0, 10)
    ]
    mixed = [*swapped[:3], replace(swapped[3], corpus="synthetic_persona_chat + empathetic_dialogues")]
    (panel,) = by_share(mixed).axes
    assert (panel.get_title(loc="left") or panel.get_title()) == f"on {ED}"
    home = [replace(one, corpus="empathetic_dialogues") for one in swapped]
    assert len(by_share(home).axes) == 1  # R@1 alone would be the same again
    assert len(by_share(swapped).axes) == 2


def test_a_share_without_its_pair_is_drawn_and_not_shaded():
    (first, _) = by_share(SHARES[:3]).axes  # 0 % with both, 50 % without persona
    assert [text.get_text() for text in first.texts] == ["+5.0"]
    (alone, _) = by_share(SHARES[:1]).axes
    assert len(alone.texts) == 0 and len(alone.containers) == 2


def test_home_is_the_diagonal_and_what_was_not_measured_is_empty():
    ours, theirs = laid_out(across_corpora(TRANSFER)).axes
    assert [label.get_text().replace("\n", "") for label in ours.get_yticklabels()] == [SPC, "both"]
    assert [label.get_text().replace("\n", "") for label in ours.get_xticklabels()] == [SPC, ED]
    found = {text.get_position(): text.get_text() for text in ours.texts}
    assert found == {(0, 0): "66.0\n± 0.5", (1, 0): "31.0\n± 0.5", (1, 1): "52.0\n± 0.5"}
    found = {text.get_position(): text.get_text() for text in theirs.texts}
    assert (found[0, 0], found[1, 0], found[0, 1], found[2, 2]) == ("36.2", "41.2", "28.8", "45.1")


def test_long_names_break_without_losing_a_letter():
    assert _wrapped(ED) == "Empathetic\nDialogues"
    assert _wrapped(SPC) == "Synthetic-\nPersona-Chat"
    assert _wrapped("ESConv") == "ESConv"
    assert _wrapped("PEC and ESConv, both") == "PEC and\nESConv, both"
    assert _wrapped("unbreakablename") == "unbreakablename"


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_no_text_leaves_the_canvas_or_covers_another(figure):
    with matplotlib.rc_context(STYLE):
        canvas = figure.canvas(figure.rows(ROWS))
        canvas.draw_without_rendering()
    texts = [text for legend in canvas.legends for text in legend.get_texts()]
    for panel in canvas.axes:
        texts += [*panel.texts, panel.xaxis.label, panel.yaxis.label]
        for axis, limits in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
            # matplotlib keeps ticks outside of the limits too, and does not show them.
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            texts += [label for place, label in ticks if min(limits) <= place <= max(limits)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    assert len(boxes) > 12
    for place, (name, box) in enumerate(boxes):
        assert canvas.bbox.x0 <= box.x0 and box.x1 <= canvas.bbox.x1, name
        assert canvas.bbox.y0 <= box.y0 and box.y1 <= canvas.bbox.y1, name
        for other, covered in boxes[place + 1 :]:
            assert not box.overlaps(covered), (name, other)
