from math import log, log2, sqrt

import numpy as np
import pandas as pd
import pytest

from listenwell.dialogue import Dialogue, Factors, Reading, Scored, Turn
from listenwell.errors import InputError
from listenwell.papers.corpus_analysis.factor_report import cross_grids, distribution_grids, page, word_grids
from listenwell.papers.corpus_analysis.factors import (
    ALL,
    EMPATHETIC,
    analyse,
    cross_table,
    entropy,
    is_reply,
    mutual_information,
    turn_table,
)
from listenwell.papers.corpus_analysis.words import label_words, log_odds

ER, IP, EX = "emotional_reaction", "interpretation", "exploration"


def reply(mechanisms, act, expressed_emotion, **more):
    return Factors(mechanisms=mechanisms, act=act, expressed_emotion=expressed_emotion, **more)


BOTH = reply((ER, EX), "questioning", "surprise")
WISH = reply((ER,), "wishing", "caring")
NONE = reply((), "others", "neutral")
ASK = reply((EX,), "questioning", "surprise")
UNREAD = reply(None, "agreeing", "approval")
REPLIES = [(0, BOTH), (1, WISH), (2, NONE), (3, ASK), (3, UNREAD)]


def rows_of(replies):
    """Rows of `turn_table` for replies, each with the number of its dialogue."""
    by_dialogue = {}
    for number, factors in replies:
        by_dialogue.setdefault(number, []).extend([Turn("speaker", "Hi."), Turn("listener", "Oh.", factors)])
    turns = turn_table(Dialogue(tuple(turns)) for turns in by_dialogue.values())
    return turns[turns["is_reply"]]


def nonzero(table):
    return {pair: count for pair, count in table.counts.stack().items() if count}


def table(given, of, whose=EMPATHETIC, replies=REPLIES, **settings):
    return cross_table(rows_of(replies), given, of, whose, draws=20, **settings)


def talk(*turns, **fields):
    return Dialogue(tuple(Turn(who, text, factors) for who, text, factors in turns), **fields)


def test_each_mechanism_of_a_reply_makes_a_pair_and_replies_without_are_left_out():
    found = table("mechanism", "act")
    assert nonzero(found) == {(ER, "questioning"): 1, (ER, "wishing"): 1, (EX, "questioning"): 2}
    shares = found.conditional.loc[ER]
    assert shares[shares > 0].to_dict() == {"questioning": 0.5, "wishing": 0.5}
    assert found.conditional.loc[IP].isna().all() and found.to_dict()["conditional"][1] is None  # 0 / 0
    assert found.conditional.loc[EX].sum() == 1.0
    # H(X) + H(Y) − H(X, Y) of the quarters 1, 1, 2: 1 + 0.8113 − 1.5
    assert found.information.bits == pytest.approx(1 + 2 - 0.75 * log2(3) - 1.5)
    assert found.information.independent == pytest.approx(1 / (2 * 4 * log(2)))
    assert found.information.share == pytest.approx((1.5 - 0.75 * log2(3)) / (2 - 0.75 * log2(3)))


def test_acts_and_expressed_emotions_are_counted_in_empathetic_replies_or_in_all():
    found = table("act", "expressed_emotion")
    assert (
        found.counts.to_numpy().sum() == 4
    )  # the reply whose mechanisms nobody knows stays, the one without goes
    assert found.information.bits == pytest.approx(1.5)
    assert found.information.share == pytest.approx(1.0)
    everyone = table("act", "expressed_emotion", ALL)
    assert everyone.counts.to_numpy().sum() == 5
    assert everyone.information.bits == pytest.approx(0.4 * log2(2.5) + 0.6 * log2(5))


def test_mechanisms_together_count_each_reply_once():
    found = table("mechanisms", "act", ALL)
    assert nonzero(found) == {
        ("none", "others"): 1,
        ("ER", "wishing"): 1,
        ("EX", "questioning"): 1,
        ("ER+EX", "questioning"): 1,
    }
    assert found.information.bits == pytest.approx(1.5)


def test_mutual_information_by_hand():
    assert mutual_information(np.array([[5, 0], [0, 5]])) == pytest.approx(1.0)
    assert mutual_information(np.array([[4, 2], [2, 1]])) == pytest.approx(0.0)
    assert mutual_information(np.zeros((3, 2))) == 0.0
    assert entropy(np.array([1, 1, 2])) == pytest.approx(1.5)


def test_nothing_and_one_class_are_no_division_by_zero():
    empty = table("mechanism", "act", replies=[])
    assert empty.information is None and not empty.counts.to_numpy().any()
    assert empty.to_dict()["conditional"] == [None, None, None]
    single = table("act", "expressed_emotion", replies=[(0, ASK), (1, ASK)])
    assert single.information.bits == 0.0 and single.information.share is None
    assert (single.information.low, single.information.high, single.information.independent) == (
        0.0,
        0.0,
        0.0,
    )


def test_the_interval_is_over_dialogues_and_by_the_seed():
    varied = [WISH, ASK, ASK, UNREAD, NONE] * 4
    within_one = table("act", "expressed_emotion", ALL, replies=[(7, factors) for factors in varied])
    assert within_one.information.low == pytest.approx(within_one.information.bits)
    assert within_one.information.high == pytest.approx(within_one.information.bits)
    across = list(enumerate(varied))
    found = table("act", "expressed_emotion", ALL, replies=across, seed=1)
    assert found.information.low < found.information.bits < found.information.high
    assert table("act", "expressed_emotion", ALL, replies=across, seed=1).information == found.information
    assert table("act", "expressed_emotion", ALL, replies=across, seed=2).information != found.information
    with pytest.raises(InputError, match="0 draws"):
        cross_table(rows_of(across), "act", "expressed_emotion", draws=0)


def test_replies_come_right_after_another_persons_turn():
    dialogue = talk(
        ("listener", "Hello.", NONE),
        ("speaker", "Hi.", None),
        ("listener", "Yes?", ASK),
        ("listener", "Go on.", WISH),
        ("other", "Me too.", None),
        ("listener", "Oh.", BOTH),
    )
    assert [index for index in range(6) if is_reply(dialogue, index)] == [2, 5]
    turns = turn_table([dialogue])
    assert turns[turns["is_reply"]]["act"].tolist() == [ASK.act, BOTH.act]


SORRY = Factors(levels=(2, 0, 0), act="sympathizing", expressed_emotion="sadness", intent="sympathizing")
HOW = Factors(levels=(1, 0, 2), act="questioning", expressed_emotion="surprise", emotion="proud")
TALKS = [
    talk(
        ("speaker", "My dog died, my dog!", Factors(intent="sad")),
        ("listener", "I'm sorry.", SORRY),
        emotion="sad",
    ),
    talk(
        ("speaker", "I won.", None),
        ("listener", "Wow! How?", HOW),
        ("speaker", "By luck.", Factors(intent="proud")),
        emotion="proud",
    ),
]


def test_labels_are_counted_by_role():
    found = analyse(TALKS, draws=2)
    shown = {
        name: (one.total, {label: n for label, n in one.counts.items() if n})
        for name, one in found.distributions.items()
    }
    assert shown == {
        "emotion": (2, {"proud": 1, "sad": 1}),
        "emotion_heard": (1, {"proud": 1}),
        "intent_speaker": (2, {"proud": 1, "sad": 1}),
        "intent_listener": (1, {"sympathizing": 1}),
        "intent_last": (2, {"proud": 1, "sympathizing": 1}),
        "act": (2, {"questioning": 1, "sympathizing": 1}),
        "expressed_emotion": (2, {"sadness": 1, "surprise": 1}),
        "mechanism": (2, {ER: 2, EX: 1}),
        "mechanisms": (2, {"ER": 1, "ER+EX": 1}),
        "level_emotional_reaction": (2, {"weak": 1, "strong": 1}),
        "level_interpretation": (2, {"no": 2}),
        "level_exploration": (2, {"no": 1, "strong": 1}),
    }
    assert (found.dialogues, found.turns, found.replies) == (2, 5, 2)
    assert len(found.distributions["intent_last"].counts) == 41
    assert list(found.distributions["mechanisms"].counts)[:3] == ["ER", "ER+EX", "none"]


def test_an_intent_is_taken_from_the_reading_where_there_is_no_factor():
    turn = Turn(
        "speaker", "Yes.", readings=(Reading("intent", (Scored("agreeing", 0.8), Scored("sad", 0.2))),)
    )
    assert turn_table([Dialogue((turn,))])["intent"].tolist() == ["agreeing"]


def test_words_are_counted_by_emotion_and_role():
    found = analyse(TALKS, draws=2).words
    (sad,) = (one for one in found["emotion_speaker"] if one.label == "sad")
    assert sad.total == 5 and [(word.word, word.count) for word in sad.used] == [("dog", 2), ("died", 1)]
    (questioning,) = (one for one in found["act"] if one.label == "questioning")
    assert questioning.total == 2 and [word.word for word in questioning.used] == ["wow"]
    assert list(found) == ["emotion_speaker", "emotion_listener", "act", "expressed_emotion"]


def test_the_emotion_heard_stands_in_where_the_corpus_gives_none():
    heard = Reading("emotion", (Scored("lonely", 0.9),))
    dialogue = Dialogue(
        (
            Turn("speaker", "Nobody calls.", readings=(heard,)),
            Turn("listener", "Oh no.", Factors(emotion="lonely")),
        )
    )
    words = analyse([dialogue], draws=2).words
    assert [one.label for one in words["heard_speaker"]] == ["lonely"]
    assert [word.word for word in words["heard_listener"][0].used] == ["oh"]
    assert "emotion_speaker" not in words


def test_log_odds_by_hand():
    z = log_odds(np.array([[3.0, 1.0], [1.0, 3.0]]), prior=4)
    # α = 2 each: odds 5/3 in the one group and 3/5 in the other
    expected = 2 * log(5 / 3) / sqrt(1 / 5 + 1 / 3)
    assert z == pytest.approx(np.array([[expected, -expected], [-expected, expected]]))
    assert not log_odds(np.array([[3.0, 1.0]])).any()
    assert not log_odds(np.array([[3.0], [1.0]])).any()
    with pytest.raises(InputError, match="prior"):
        log_odds(np.ones((2, 2)), prior=0)


def words_of(counts, **settings):
    texts = {
        label: [word for word, times in uses.items() for _ in range(times)] for label, uses in counts.items()
    }
    return label_words(pd.Series(list(texts)), pd.Series(list(texts.values())), list(counts), **settings)


def test_typical_words_are_not_the_frequent_ones():
    counts = {
        "joyful": {"the": 19, "party": 10, "really": 11},
        "content": {},
        "sad": {"the": 19, "funeral": 10, "really": 11},
    }
    joyful, sad = words_of(counts, prior=40)
    assert [word.word for word in joyful.used] == ["really", "party"]  # "the" is grammar
    assert [word.word for word in joyful.typical] == ["party"]
    assert (joyful.label, joyful.total, joyful.typical[0].count) == ("joyful", 40, 10)
    assert [word.word for word in sad.typical] == ["funeral"]
    assert [len(one.used) for one in words_of(counts, most=1)] == [1, 1]
    assert words_of({}) == []


def test_a_word_said_twice_is_an_accident():
    others = {"really": 1000}
    twice, _ = words_of({"joyful": {"yay": 2, "really": 3}, "sad": others}, prior=100)
    thrice, _ = words_of({"joyful": {"yay": 3, "really": 3}, "sad": others}, prior=100)
    assert (twice.used[1].word, twice.used[1].z) == ("yay", 2.04)
    assert [word.word for word in twice.typical] == []
    assert [(word.word, word.z) for word in thrice.typical] == [("yay", 2.5)]


def test_tables_for_people():
    found = analyse(TALKS, draws=2)
    information, first, *_ = cross_grids(found)
    assert first.columns[0] == "mechanism (CM)" and first.columns[-1] == "n"
    assert [(row[0], row[5], row[-1]) for row in first.rows] == [
        ("emotional reaction", "0.500", "2"),
        ("exploration", "1.000", "1"),
    ]
    assert information.rows[0][:2] == (
        "P(DA | CM): dialogue act given mechanism",
        "replies with a mechanism",
    )
    rows = {grid.title: grid.rows for grid in distribution_grids(found)}
    assert rows["Mechanisms of replies, which can use several (n = 2)"][0] == (
        "emotional reaction",
        "2",
        "100.0 %",
    )
    assert word_grids(found)[0].rows[1][2] == "dog (2), died (1)"
    text = page(found, {"corpus": "a <b> c"}, ["heat-maps"])
    assert "- corpus: a &lt;b> c\n" in text and "![heat-maps](heat-maps.svg)" in text
    assert "## P(DA | CM): dialogue act given mechanism, in replies with a mechanism" in text


def test_an_empty_corpus_has_empty_tables():
    found = analyse([])
    assert (found.replies, found.distributions, found.words) == (0, {}, {})
    assert not any(grid.rows for grid in cross_grids(found))
