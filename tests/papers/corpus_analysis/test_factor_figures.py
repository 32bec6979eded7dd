from itertools import combinations, cycle

import matplotlib
import pytest
from matplotlib.text import Text

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.labels import ACTS, EMOTIONS, EMOTIONS_AND_INTENTS, EXPRESSED_EMOTIONS
from listenwell.papers.corpus_analysis import factor_report
from listenwell.papers.corpus_analysis.factor_report import FIGURES, draw
from listenwell.papers.corpus_analysis.factors import analyse
from listenwell.results.drawing import KINDS, STYLE


def corpus():
    """Every label at least once, and a word of each label."""
    acts, expressed_emotions, intents = cycle(ACTS), cycle(EXPRESSED_EMOTIONS), cycle(EMOTIONS_AND_INTENTS)
    for number, emotion in enumerate([*EMOTIONS, *EMOTIONS[:9]]):
        act, expressed_emotion = next(acts), next(expressed_emotions)
        levels = (number % 3, number // 3 % 3, number // 9 % 3)
        said = Factors(levels=levels, act=act, expressed_emotion=expressed_emotion, intent=next(intents))
        yield Dialogue(
            (
                Turn("speaker", f"{emotion} " * 4 + "w" * 90, Factors(intent=said.intent)),
                Turn("listener", f"{act} {expressed_emotion} " * 4 + "快乐", said),
            ),
            emotion=emotion,
        )


@pytest.fixture(scope="module")
def analysis():
    return analyse(corpus(), draws=5)


@pytest.fixture(scope="module")
def drawn(analysis, tmp_path_factory):
    return draw(analysis, "invented $x$ · 41", tmp_path_factory.mktemp("figures"))


def canvas_of(name, analysis):
    with matplotlib.rc_context(STYLE):
        canvas = FIGURES[name](analysis)
        canvas.suptitle("corpus split", x=0.01, ha="left", fontsize=10)
        canvas.draw_without_rendering()
    return canvas


def texts_of(canvas, monkeypatch):
    """Every text that is drawn; ticks beyond an axis exist too, but are not drawn."""
    drawn, draw_text = [], Text.draw

    def noted(text, renderer):
        drawn.append(text)
        draw_text(text, renderer)

    monkeypatch.setattr(Text, "draw", noted)
    canvas.draw_without_rendering()
    return [text for text in drawn if text.get_visible() and text.get_text().strip()]


def test_every_figure_is_written_as_svg_and_png(drawn):
    assert sorted(file.name for file in drawn) == sorted(
        f"{name}.{kind}" for name in FIGURES for kind in KINDS
    )
    for file in drawn:
        assert file.read_bytes().startswith(b"\x89PNG" if file.suffix == ".png" else b"<?xml")


def test_the_same_analysis_gives_the_same_bytes_and_no_date(analysis, drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(
        factor_report, "FIGURES", {name: FIGURES[name] for name in ("heat-maps", "mechanism-levels")}
    )
    again = draw(analysis, "invented $x$ · 41", tmp_path)
    assert len(again) == 4
    for file in again:
        assert file.read_bytes() == (drawn[0].parent / file.name).read_bytes()
    assert b"<dc:date>" not in (tmp_path / "heat-maps.svg").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_nothing_is_cut_and_no_text_covers_another(name, analysis, monkeypatch):
    canvas = canvas_of(name, analysis)
    found = texts_of(canvas, monkeypatch)
    assert len(found) > 5
    for text in found:
        box = text.get_window_extent()
        inside = canvas.bbox.x0 <= box.x0 and box.x1 <= canvas.bbox.x1
        assert inside and canvas.bbox.y0 <= box.y0 and box.y1 <= canvas.bbox.y1, text
    # Boxes of tilted labels overlap where their letters do not.
    level = [(text.get_text(), text.get_window_extent()) for text in found if text.get_rotation() != 45]
    covered = [(a, b) for (a, one), (b, two) in combinations(level, 2) if one.overlaps(two)]
    assert covered == []


def test_heat_maps_show_values_counts_and_information(analysis):
    canvas = canvas_of("heat-maps", analysis)
    panels = canvas.axes[:3]
    assert [panel.get_title(loc="left").split("\n")[0] for panel in panels] == [
        "P(DA | CM):",
        "P(EM | CM):",
        "P(EM | DA):",
    ]
    table = analysis.tables[0]
    assert f"I = {table.information.bits:.3f} bits" in panels[0].get_title(loc="left")
    assert panels[0].get_xticklabels()[0].get_text() == (
        f"emotional reaction ({table.counts.iloc[0].sum():,})"
    )
    shown = {text.get_position(): text.get_text() for text in panels[0].texts}
    assert len(shown) == 27
    share = table.conditional.iloc[2, 4]
    assert shown[(2, 4)] == f"{share:.2f}".removeprefix("0")


def test_all_41_labels_stand_in_the_bars(analysis):
    canvas = canvas_of("emotions-and-intents", analysis)
    for panel in canvas.axes:
        assert {label.get_text() for label in panel.get_yticklabels()} == set(EMOTIONS_AND_INTENTS)


def test_what_is_not_there_is_not_drawn(tmp_path):
    assert draw(analyse([]), "empty", tmp_path) == []
    one = Dialogue((Turn("a", "Hi."), Turn("listener", "Yes?", Factors(act="questioning"))))
    files = draw(analyse([one], draws=2), "one", tmp_path)
    assert {file.stem for file in files} == {"reply-factors"}


def test_an_x_that_never_occurs_has_dashes():
    one = Dialogue(
        (Turn("a", "Hi."), Turn("listener", "Yes?", Factors(act="questioning", expressed_emotion="surprise")))
    )
    panel, _ = canvas_of("heat-maps", analyse([one], draws=2)).axes
    shown = {text.get_position(): text.get_text() for text in panel.texts}
    assert shown[(4, 8)] == "1.00" and shown[(4, 0)] == "0"
    assert shown[(0, 0)] == "–"
