import json
import math
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import InputError, MissingExtraError
from listenwell.labels import EMOTIONS
from listenwell.papers.corpus_analysis.listeners import (
    ALL,
    PAIR,
    Comparison,
    Similarity,
    compare,
    draw,
    figure,
    finding,
    grid,
    reply_row,
)
from listenwell.results.drawing import KINDS, STYLE

W = math.log(5 / 2) + 1  # weighs a word that one of four texts holds
ONCE = [("ann", "tea"), ("ann", "Tea!"), ("ben", "rain"), ("ben", "rain.")]


def talked(*replies, emotion="sad", heard=None):
    return [(text, name, f"{name}-{number}", emotion, heard) for number, (name, text) in enumerate(replies)]


def example(*, listener="listener", notes=(), factors=None, **fields):
    context = Dialogue((Turn("speaker", "My cat is ill."),), listener=listener, notes=notes, **fields)
    return Example(context, Turn(listener, "Oh no!", factors))


def test_tf_idf_by_hand():
    alike = Similarity(["tea warm", "Tea, cold!", "tea", "tea rain"])
    # In all texts: 1. In one of four: ln(5 / 2) + 1.
    assert alike([0], [1]) == pytest.approx(1 / (1 + W**2))
    # A set is one document: tea twice and warm once, against tea and cold.
    assert alike([0, 2], [1]) == pytest.approx(2 / math.sqrt((4 + W**2) * (1 + W**2)))
    assert alike([0], [2]) == pytest.approx(1 / math.sqrt(1 + W**2))
    assert alike([0, 1], [1, 0]) == pytest.approx(1) and alike([0, 1], [1, 0]) <= 1


def test_marks_weigh_nothing_and_a_set_without_words_is_like_none():
    alike = Similarity(["tea?!", "tea", "...", "rain"])
    assert alike([0], [1]) == pytest.approx(1)
    assert alike([2], [1]) == 0 and alike([3], [1]) == 0
    with pytest.raises(InputError, match="no words"):
        Similarity(["...", "?!"])


def test_two_listeners_beside_random_sets_by_hand():
    (pair,) = compare(talked(*ONCE), least=2, runs=40).pairs.itertuples()
    assert (pair.emotion, pair.listeners, pair.replies, pair.pool) == ("sad", ["ann", "ben"], [2, 2], 4)
    assert pair.similarity == 0  # they share no word
    # Four replies make two sets of two in three ways: once the two people's, twice each with both words.
    assert {round(value, 9) for value in pair.random} == {0, 1}
    assert pair.mean == pytest.approx(2 / 3, abs=0.2) and pair.similarity < pair.mean
    ones = round(sum(pair.random))
    assert pair.spread == pytest.approx(math.sqrt(ones * (40 - ones) / 40 / 39))


def test_random_sets_are_disjoint_of_the_same_sizes_and_from_all_replies():
    # Every reply has a word of its own: disjoint sets share none, and a word weighs the same everywhere.
    own = talked(*(("ann", f"a{n}") for n in range(4)), *(("ben", f"b{n}") for n in range(3)), ("cleo", "c"))
    (pair,) = compare(own, least=1).pairs.itertuples()
    assert pair.random == [0] * 5 and pair.similarity == 0
    assert pair.replies == [4, 3] and pair.pool == 8
    # From the two people's replies alone, two sets of two would have all words in common, or none.
    others = [*ONCE, ("cleo", "snow"), ("dora", "snow")]
    (pair,) = compare(talked(*others), least=1, runs=40).pairs.itertuples()
    assert pair.listeners == ["ann", "ben"]
    assert any(0 < value < 0.99 for value in pair.random)


def test_the_two_with_the_most_replies_and_of_equals_who_came_first():
    replies = talked(
        ("zoe", "x"), ("ann", "x"), ("ben", "x"), ("ben", "x"), ("ann", "y"), ("zoe", "y"), ("cy", "z")
    )
    (pair,) = compare(replies, least=1).pairs.itertuples()
    assert pair.listeners == ["zoe", "ann"]
    more = [*replies, *talked(("cy", "x"), ("cy", "x"))]
    assert compare(more, least=1).pairs["listeners"][0] == ["cy", "zoe"]


def test_conversations_of_each_are_counted():
    replies = [("x", "ann", "1", "sad", None), ("y", "ann", "1", "sad", None), ("x", "ben", "2", "sad", None)]
    (pair,) = compare(replies, least=1).pairs.itertuples()
    assert (pair.replies, pair.dialogues) == ([2, 1], [1, 1])


def test_the_seed_draws_the_same_sets():
    replies = talked(
        *((name, f"{name} word{n} word{n % 3}") for n in range(9) for name in ("ann", "ben", "cleo"))
    )
    first, again = compare(replies, seed=3), compare(replies, seed=3)
    assert first.to_dict() == again.to_dict()
    assert compare(replies, seed=4).pairs["random"][0] != first.pairs["random"][0]
    assert compare(replies, seed=4).pairs["similarity"][0] == first.pairs["similarity"][0]


def test_emotions_without_two_busy_listeners_are_left_out_with_the_reason():
    found = compare(
        [
            *talked(*ONCE, emotion="proud"),
            *talked(("ann", "tea"), ("ann", "tea"), emotion="afraid"),
            *talked(*ONCE[:3], emotion="sad"),
            *talked(("ann", "tea"), emotion=None),
            ("tea", None, "9", "proud", None),
        ],
        least=2,
    )
    assert list(found.pairs["emotion"]) == ["proud"] and found.by == "emotion"
    assert found.left_out == {"afraid": "one listener", "sad": "the second listener has 1 of 2 replies"}
    assert (found.replies, found.unnamed, found.unlabelled, found.listeners) == (11, 1, 1, 2)
    assert found.pairs["pool"][0] == 4  # who cannot be told is in no set


def test_emotions_stand_in_the_order_of_their_labels():
    replies = [one for emotion in reversed(EMOTIONS) for one in talked(*ONCE, emotion=emotion)]
    assert list(compare(replies, least=1).pairs["emotion"]) == list(EMOTIONS)


def test_heard_emotions_stand_in_and_without_any_all_replies_are_one_group():
    heard = compare([*talked(*ONCE, emotion=None, heard="joyful"), *talked(ONCE[0], emotion=None)], least=1)
    assert heard.by == "heard" and heard.unlabelled == 1
    assert list(heard.pairs["emotion"]) == ["joyful"]
    given = compare([*talked(*ONCE), *talked(*ONCE, emotion=None, heard="joyful")], least=1)
    assert given.by == "emotion" and given.unlabelled == 4
    together = compare(talked(*ONCE, emotion=None), least=1)
    assert together.by == "together" and list(together.pairs["emotion"]) == [ALL]


def test_nothing_to_compare_is_no_pair():
    empty = compare([])
    assert (len(empty.pairs), empty.replies, empty.listeners) == (0, 0, 0)
    nobody = compare(talked((None, "tea")))
    assert (len(nobody.pairs), nobody.replies, nobody.unnamed) == (0, 1, 1)
    for wrong in ({"runs": 1}, {"least": 0}):
        with pytest.raises(InputError):
            compare([], **wrong)


def test_who_listens():
    def listener(**fields):
        return reply_row(example(**fields))[1]

    assert listener() is None and listener(listener="User 2") is None
    assert listener(listener="ann") == "ann" and listener(notes=(("listener_worker", "12"),)) == "12"
    row = reply_row(example(listener="ann", id="d", emotion="sad", factors=Factors(emotion="lonely")))
    assert row == ("Oh no!", "ann", "d", "sad", "lonely")
    assert reply_row(example())[2] == "My cat is ill."  # without an id


def test_scikit_learn_missing_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.feature_extraction.text", None)
    with pytest.raises(MissingExtraError, match=r"'scikit-learn'.*listenwell\[bench\]"):
        compare(talked(*ONCE))


def pair(emotion="sad", similarity=0.25, random=(0.5, 0.625, 0.375), replies=(1200, 7)):
    mean, spread = float(np.mean(random)), float(np.std(random, ddof=1))
    return emotion, ["ann", "ben"], replies, [3, 4], 2000, similarity, list(random), mean, spread


def comparison(*pairs, by="emotion"):
    return Comparison(by, pd.DataFrame(list(pairs), columns=PAIR), {"proud": "one listener"}, 3000, 1, 2, 9)


def test_numbers_go_to_json():
    found = comparison(pair(), pair("proud", 0.5), pair("lonely", 0.45))
    data = json.loads(json.dumps(found.to_dict()))
    assert (data["lower"], data["lowest"], data["of"], data["listeners"]) == (2, 1, 3, 9)
    assert data["pairs"][0]["mean"] == 0.5 and data["pairs"][0]["spread"] == 0.125
    assert data["pairs"][0]["random"] == [0.5, 0.625, 0.375] and data["left_out"] == {"proud": "one listener"}


def test_the_table_has_the_largest_difference_first():
    found = comparison(pair("proud", 0.75), pair())
    assert grid(found).rows == (
        ("sad", "0.250", "0.500", "0.125", "−0.250", "1,200 + 7", "2,000"),
        ("proud", "0.750", "0.500", "0.125", "+0.250", "1,200 + 7", "2,000"),
    )
    assert finding(found).endswith("for 1 of 2 emotions, for 1 of them in every draw.")
    assert "are less alike" in finding(comparison(pair(ALL), by="together"))
    assert "are no less alike" in finding(comparison(pair(ALL, 0.5), by="together"))


@pytest.mark.parametrize("emotions", [EMOTIONS, [ALL]])
def test_every_text_of_the_figure_is_inside_it(emotions, monkeypatch):
    found = comparison(*(pair(one, place / 40) for place, one in enumerate(emotions)))
    drawn, draw_text = [], Text.draw
    monkeypatch.setattr(Text, "draw", lambda text, renderer: (drawn.append(text), draw_text(text, renderer)))
    with matplotlib.rc_context(STYLE):
        canvas = figure(found, "a corpus train+valid+test · replies: 24,850")
        canvas.draw_without_rendering()
    shown = [text for text in drawn if text.get_visible() and text.get_text().strip()]
    assert {"two listeners", *(f"{emotion} (1,200 + 7)" for emotion in emotions)} <= {
        text.get_text() for text in shown
    }
    for text in shown:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= canvas.bbox.width, text
        assert box.y0 >= 0 and box.y1 <= canvas.bbox.height, text


def test_the_points_stand_at_their_values():
    with matplotlib.rc_context(STYLE):
        canvas = figure(comparison(pair("proud", 0.75), pair()), "corpus")
    (panel,) = canvas.axes
    lines = {line.get_label(): list(line.get_xdata()) for line in panel.lines}
    assert lines["two listeners"] == [0.25, 0.75]
    assert [0.5, 0.5] in lines.values()
    assert [tick.get_text() for tick in panel.get_yticklabels()] == [
        "sad (1,200 + 7)",
        "proud (1,200 + 7)",
    ]


def test_the_same_comparison_gives_the_same_bytes(tmp_path):
    found = comparison(pair(), pair("proud"))
    files = draw(found, "a $x$ corpus", tmp_path / "one")
    assert [file.name for file in files] == [f"listeners.{kind}" for kind in KINDS]
    for file, again in zip(files, draw(found, "a $x$ corpus", tmp_path / "two"), strict=True):
        assert file.read_bytes() == again.read_bytes()
    assert files[1].read_bytes().startswith(b"\x89PNG")
