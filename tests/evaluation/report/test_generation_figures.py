import matplotlib
import pytest

from listenwell.evaluation.report.figures import draw, figures_of, old_figures
from listenwell.evaluation.report.generation_figures import MARKS, SPEAKING_FIGURES
from listenwell.evaluation.report.tables import figure_grids, gap_grid
from listenwell.results.drawing import KINDS, STYLE
from listenwell.results.metric_registry import METRICS
from listenwell.results.published_generation import FIGURES, MEMBERS
from listenwell.results.store import Result

PLANNING, REALIZATION, FAMILY = SPEAKING_FIGURES


def row(task, system, **metrics):
    return Result(
        task, system, tuple(metrics.items()), "empathetic_dialogues", "test", 5, "d", checkpoint="c"
    )


ROWS = [
    row("planning", "planned", da_hits_1_after=50.0, em_hits_1_after=40.0, cm_exact=60.0),
    row("planning", "CM → DA", da_hits_1_after=45.0, da_hits_3_after=80.0, cm_exact=60.0, da_share=59.0),
    row("realization", "CM → DA → EM, predicted factors", cm_realized=70.0, da_realized=80.0),
    row("family", "CM ‖ DA, gold factors", perplexity_by_token=12.5, bleu_2=9.0, rouge_l=20.0),
]


def test_the_papers_tables_are_whole():
    counts = {
        task: sum(entry.task == task for entry in FIGURES) for task in ("family", "planning", "realization")
    }
    assert counts == {"family": 12 * 2 * 4, "planning": 6 * 2 * 4, "realization": 2 * (6 * 2 + 2 * 3)}
    found = {(entry.task, entry.system, entry.metric): entry.value for entry in FIGURES}
    assert found["family", "Reddit happy: CM → DA → EM", "perplexity_by_token"] == 17.02
    assert found["family", "Reddit offmychest: Vanilla", "perplexity_by_token"] == 22.11
    assert found["family", "Reddit happy: +EM", "greedy_matching"] == 0.6778
    assert found["planning", "Reddit happy: DA → EM", "em_hits_1_after"] == 53.5
    assert found["planning", "Reddit offmychest: DA ‖ EM", "da_first"] == 35.0
    assert found["planning", "Reddit offmychest: CM → DA", "da_hits_3_after"] == 75.1
    assert [
        found["realization", "Reddit happy: CM → DA → EM", f"{x}_realized"] for x in ("cm", "da", "em")
    ] == [
        76.7,
        83.7,
        81.2,
    ]
    assert [
        found["realization", "Reddit offmychest: CM → DA → EM", f"{x}_realized"] for x in ("cm", "da", "em")
    ] == [70.7, 76.2, 72.6]
    assert len(MEMBERS) == 12 and all(entry.metric in METRICS for entry in FIGURES)


def test_the_paper_stands_beside_ours_without_a_gap():
    rows = {line[0]: line for line in gap_grid("planning", ROWS).rows if line[1].startswith("DA: Hits@1")}
    assert rows["Reddit happy: CM → DA"][2:5] == ("45.00", "49.50", "–")
    assert rows["Reddit happy: CM ‖ DA"][2:5] == ("–", "46.10", "–")
    (plan_adherence,) = figure_grids("realization", ROWS)
    assert plan_adherence.rows[0][:4] == ("CM → DA → EM, predicted factors", "ours", "5", "70.00")
    assert plan_adherence.rows[-1][1] == "paper"


def test_bars_are_ours_in_the_order_of_the_paper_and_marks_are_its():
    rows = PLANNING.rows(ROWS)
    assert [one.system for one in rows] == ["CM → DA", "planned"]
    assert PLANNING.papers(rows[0], "da_hits_1_after") == [
        ("Reddit happy", 49.5),
        ("Reddit offmychest", 45.9),
    ]
    assert PLANNING.papers(rows[1], "da_hits_1_after") == []
    with matplotlib.rc_context(STYLE):
        canvas = PLANNING.canvas(rows)
    first = canvas.axes[0]
    assert [bar.get_width() for bar in first.patches] == [45.0, 50.0]
    assert [(line.get_xdata()[0], line.get_marker()) for line in first.lines] == [
        (49.5, MARKS["Reddit happy"][0]),
        (45.9, MARKS["Reddit offmychest"][0]),
    ]
    assert [text.get_text() for text in first.get_yticklabels()] == ["CM → DA", "planned"]
    assert len(canvas.axes) == 3  # nobody has the fourth metric


def test_figures_are_written_with_the_others_and_known_to_be_old(tmp_path):
    files = draw(ROWS, tmp_path)
    assert sorted(file.name for file in files) == sorted(
        f"{name}.{kind}" for name in ("planning", "realization", "family") for kind in KINDS
    )
    assert old_figures(ROWS, tmp_path) == []
    changed = [ROWS[0], row("planning", "CM → DA", da_hits_1_after=45.1), *ROWS[2:]]
    assert {file.stem for file in old_figures(changed, tmp_path)} == {"planning"}


@pytest.mark.parametrize("figure", SPEAKING_FIGURES, ids=lambda figure: figure.name)
def test_nothing_measured_is_no_figure(figure):
    assert figure not in figures_of([])
