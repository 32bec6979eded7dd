import matplotlib
import pytest

from listenwell.evaluation.report import understanding_figures as module
from listenwell.evaluation.report.understanding_figures import (
    annotator_rows,
    beside_papers,
    paper_heights,
    papers_beside,
)
from listenwell.results.drawing import STYLE, save
from listenwell.results.published import Published
from listenwell.results.store import Result

QUESTIONS = {
    "exploration": 94.9,
    "dialogue act": 94.8,
    "utterance intent": 64.2,
    "dialogue emotion": 51.4,
    "response intent": 35.0,
}


def measured(question, value, *, who="annotators", task="understanding", metric="accuracy", spread=0.4):
    return Result(
        *(task, f"{question}: {who}", ((metric, value),), "c", "test", 9, "d"),
        spreads=((metric, spread),) if spread else (),
    )


ROWS = [measured(question, value) for question, value in QUESTIONS.items()]


def drawn(rows):
    """The figure as it is laid out."""
    with matplotlib.rc_context(STYLE):
        canvas = beside_papers(rows, "accuracy")
        canvas.draw_without_rendering()
    return canvas, canvas.axes[0]


def boxes_of(canvas, panel):
    """Where every text of the figure stands, by what it says."""
    texts = [*panel.texts, *panel.get_yticklabels(), *panel.get_xticklabels(), panel.xaxis.label]
    texts += [text for legend in canvas.legends for text in legend.get_texts()]
    return {text.get_text(): text.get_window_extent() for text in texts if text.get_text()}


def check_texts(canvas, panel):
    boxes = list(boxes_of(canvas, panel).items())
    for place, (name, box) in enumerate(boxes):
        inside = canvas.bbox.x0 <= box.x0 and box.x1 <= canvas.bbox.x1
        assert inside and canvas.bbox.y0 <= box.y0 and box.y1 <= canvas.bbox.y1, name
        for other, covered in boxes[place + 1 :]:
            assert not box.overlaps(covered), (name, other)


def marks_of(panel):
    return [line for line in panel.lines if line.get_marker() == "D"]


def test_rows_are_the_shipped_annotators_the_best_first():
    low, high, equal = measured("b", 10.0), measured("c", 90.0), measured("a", 10.0)
    others = [
        measured("d", 50.0, who="one-adapter"),
        measured("d", 50.0, task="replies"),
        measured("d", 50.0, metric="macro_f1"),
    ]
    assert annotator_rows([low, *others, high, equal], "accuracy") == [high, equal, low]
    assert annotator_rows(others, "accuracy") == []
    assert annotator_rows(others, "macro_f1") == [others[2]]


def test_papers_stand_beside_the_same_question_and_metric_alone(monkeypatch):
    beside = "mood: annotators"
    published = (
        Published("understanding", "mood: A, B: C", "accuracy", 1.0, "s", "c", beside),
        Published("understanding", "mood: D", "macro_f1", 2.0, "s", "c", beside),
        Published("understanding", "act: E", "accuracy", 3.0, "s", "c", "act: annotators"),
        Published("replies", "mood: F", "accuracy", 4.0, "s", "c", beside),
        Published("understanding", "mood: G", "accuracy", 5.0, "s", "c", beside),
    )
    monkeypatch.setattr(module, "PUBLISHED", published)
    row = measured("mood", 3.0)
    assert papers_beside(row, "accuracy") == [("A, B: C", 1.0), ("G", 5.0)]
    assert papers_beside(row, "macro_f1") == [("D", 2.0)]
    assert papers_beside(measured("tone", 3.0), "accuracy") == []


def test_the_real_papers_are_found():
    assert papers_beside(ROWS[0], "accuracy") == [("CoMAE", 96.4)]
    assert len(papers_beside(ROWS[3], "accuracy")) == 4


def test_bars_spreads_and_marks_are_the_figures():
    _, panel = drawn(ROWS)
    assert [bar.get_width() for bar in panel.patches] == list(QUESTIONS.values())
    assert [label.get_text() for label in panel.get_yticklabels()] == list(QUESTIONS)
    for place, (row, held) in enumerate(zip(ROWS, panel.containers[1::2], strict=True)):
        (segment,) = held[2][0].get_segments()
        value = row.metric("accuracy")
        assert segment.tolist() == [pytest.approx([value - 0.4, place]), pytest.approx([value + 0.4, place])]
    wanted = [
        value for row in ROWS for _, value in sorted(papers_beside(row, "accuracy"), key=lambda p: p[1])
    ]
    assert [line.get_xdata()[0] for line in marks_of(panel)] == wanted
    texts = [text.get_text() for text in panel.texts]
    assert texts[:4] == ["94.9", "CoMAE 96.4", "94.8", "CoMAE 92.0"]
    assert texts[-1] == "35.0"  # nobody published it: no empty label
    (four,) = (text for text in texts if "\n" in text)
    assert [line.count(".") for line in four.split("\n")] == [2, 2]


def test_no_text_leaves_the_canvas_or_covers_another():
    check_texts(*drawn(ROWS))
    assert len(boxes_of(*drawn(ROWS))) == 2 * 5 + 4 + 6 + 1 + 2


def test_neither_do_many_papers_with_long_names_after_a_full_bar(monkeypatch):
    published = tuple(
        Published(
            "understanding",
            f"q{row}: A rather long name {n}",
            "accuracy",
            value,
            "s",
            "c",
            f"q{row}: annotators",
        )
        for row in range(3)
        for n, value in enumerate((99.0, 99.1, 99.2, 70.0, 70.5, 40.0, 30.0))
    )
    monkeypatch.setattr(module, "PUBLISHED", published)
    check_texts(*drawn([measured(f"q{row}", 100.0 - row / 100) for row in range(3)]))


def test_no_mark_hides_another():
    canvas, panel = drawn(ROWS)
    places = [panel.transData.transform((m.get_xdata()[0], m.get_ydata()[0])) for m in marks_of(panel)]
    wide = marks_of(panel)[0].get_markersize() * canvas.dpi / 72  # of the tilted square's side
    assert len(places) == 1 + 1 + 1 + 4
    for number, (x, y) in enumerate(places):
        # Tilted squares are apart where |dx| + |dy| is at least their diagonal.
        for other_x, other_y in places[number + 1 :]:
            assert abs(x - other_x) + abs(y - other_y) >= wide * 2**0.5 * 0.9


def test_heights_of_marks_worked_by_hand():
    apart = module._APART
    assert paper_heights([]) == []
    assert paper_heights([10.0, 20.0, 30.0]) == [0, 0, 0]
    assert paper_heights([10.0, 10.1, 30.0]) == [-apart / 2, apart / 2, 0]
    assert paper_heights([10.0, 11.0, 12.0]) == [-apart, 0, apart]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        with matplotlib.rc_context(STYLE):
            save(beside_papers(ROWS, "accuracy"), tmp_path / folder, "understanding", "a mark")
    for kind in ("svg", "png"):
        first, second = ((tmp_path / f / f"understanding.{kind}").read_bytes() for f in ("one", "two"))
        assert first == second and b"a mark" in first
    assert b"<dc:date>" not in (tmp_path / "one" / "understanding.svg").read_bytes()
    with matplotlib.rc_context(STYLE):
        save(beside_papers([*ROWS[1:], measured("exploration", 94.0)], "accuracy"), tmp_path, "other")
    assert (tmp_path / "other.png").read_bytes() != (tmp_path / "one" / "understanding.png").read_bytes()


def test_a_row_measured_once_has_no_spread():
    _, panel = drawn([measured("mood", 50.0, spread=None)])
    assert not panel.collections
