import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.dialogue import Dialogue, Factors, Turn
from listenwell.errors import CorpusError
from listenwell.labels import STRATEGIES

from .helpers import lines_of_text, quick, read, reader, replies, report, through_jsonl

TSV = "devWithStrategy_short.tsv"


def seeker(text, **fields):
    return Turn("speaker", text, **fields)


def supporter(text, strategy=None):
    return Turn("listener", text, Factors(strategy=strategy) if strategy else None)


JOB = Dialogue(
    (
        seeker("Hello, I lost my job."),
        supporter("Oh no. When was that?", "questions"),
        seeker("On Friday."),
        supporter("You sound worn out.", "reflection_of_feelings"),
        seeker("I am."),
        supporter("Rest first.", "providing_suggestions"),
        supporter("And eat.", "other"),
    ),
    "valid-1",
)


def windows(turns):
    """The publisher's TSV: a line for each of the supporter's turns, with up to four turns before it."""
    parts = []
    for number, turn in enumerate(turns):
        name = f"[{turn.factors.strategy.replace('_', ' ')}] " if turn.factors else ""
        parts.append(f"1.0 {int(turn.speaker == 'listener')} {number} {name}{turn.text}")
    ends = [number for number, turn in enumerate(turns, start=1) if turn.speaker == "listener"]
    return "".join(" EOS ".join(parts[max(0, end - 5) : end]) + "\n" for end in ends)


def test_windows_are_put_together_to_whole_conversations():
    assert read("esconv", "valid") == [
        JOB,
        Dialogue(
            (
                seeker("Hi."),
                supporter("Hi, I once was new here too.", "self_disclosure"),
                seeker("Then you know."),
                supporter("Hurray!"),
            ),
            "valid-2",
        ),
        Dialogue(
            (
                seeker("Good evening."),
                supporter("Good evening to you."),
                seeker("I [sigh] can not sleep."),
                supporter("Screens keep us awake.", "information"),
            ),
            "valid-3",
        ),
    ]


def test_every_fault_of_the_windows_is_counted():
    assert report("esconv", "valid") == (
        {
            "empty utterance": 1,
            "unknown strategy 'Cheering' (turn kept)": 1,
            "turn without flag, speaker and number": 1,
        },
        {"lines": 8},
    )
    assert report("esconv", "test") == ({}, {"lines": 1})


def test_each_turn_of_the_supporter_is_one_example_although_windows_repeat_it():
    assert replies("esconv", "valid") == [
        (1, "listener", "Oh no. When was that?"),
        (3, "listener", "You sound worn out."),
        (5, "listener", "Rest first."),
        (6, "listener", "And eat."),
        (1, "listener", "Hi, I once was new here too."),
        (3, "listener", "Hurray!"),
        (1, "listener", "Good evening to you."),
        (3, "listener", "Screens keep us awake."),
    ]


def test_failed_conversations_come_out_with_feedback_and_survey():
    assert read("esconv", "failed") == [
        Dialogue(
            (
                seeker("He sold it!"),
                supporter("Buy another.", "providing_suggestions"),
                seeker("That is no help.", notes={"feedback": "1"}),
                supporter("I see"),
            ),
            "failed-1",
            situation="My flatmate sold my bicycle.",
            notes={
                "emotion_type": "anger",
                "problem_type": "quarrel",
                "experience_type": "Current Experience",
                "survey.seeker.initial_emotion_intensity": "5",
                "survey.seeker.empathy": "1",
            },
        ),
        Dialogue((seeker("Hello?"),), "failed-5"),
    ]
    assert report("esconv", "failed") == (
        {
            "unknown strategy 'Shrugging' (turn kept)": 1,
            "empty utterance": 1,
            "broken conversation (KeyError)": 2,
            "conversation without a usable turn": 1,
        },
        {},
    )


def test_accepted_conversations_name_the_people_in_other_words():
    assert read("esconv", "accepted") == [
        Dialogue(
            (
                seeker("We parted in May."),
                supporter("So you are alone since May.", "restatement_or_paraphrasing"),
                seeker("Yes, exactly.", notes={"feedback": "5"}),
                supporter("That takes courage.", "affirmation_and_reassurance"),
            ),
            "accepted-1",
            situation="We parted in May.",
            notes={
                "emotion_type": "sadness",
                "problem_type": "breakup",
                "experience_type": "Previous Experience",
                "survey.seeker.relevance": "5",
                "survey.supporter.relevance": "4",
            },
        )
    ]
    assert report("esconv", "accepted") == ({}, {})
    assert [length for length, *_ in replies("esconv", "accepted")] == [1, 3]


words = lines_of_text().filter(lambda text: "EOS" not in text and text[0] != "[")


@quick
@given(
    texts=st.lists(st.tuples(words, words), min_size=1, max_size=6),
    strategies=st.lists(st.sampled_from(STRATEGIES.labels), min_size=6, max_size=6),
)
def test_any_conversation_comes_back_from_its_windows(scratch, texts, strategies):
    turns = []
    for (said, answered), strategy in zip(texts, strategies, strict=False):
        turns += [seeker(said), supporter(answered, strategy)]
    (scratch / TSV).write_bytes(windows(turns).encode())
    assert read("esconv", "valid", scratch) == [Dialogue(tuple(turns), "valid-1")]


def test_conversations_that_open_alike_stay_apart(tmp_path):
    first = [seeker("Hi."), supporter("Hi there."), seeker("I am sad."), supporter("Why?")]
    second = [seeker("Hi."), supporter("Hi there."), seeker("I am glad."), supporter("Good.")]
    (tmp_path / TSV).write_text(windows(first) + windows(second) + windows(first[:2]))
    assert [dialogue.turns for dialogue in read("esconv", "valid", tmp_path)] == [
        tuple(first),
        tuple(second),
        tuple(first[:2]),
    ]


def test_a_longer_first_window_of_other_words_begins_a_new_conversation(tmp_path):
    first = [seeker("Hi."), supporter("Hi there.")]
    second = [seeker("Hey."), seeker("Anybody?"), seeker("Hm."), supporter("Hello.")]
    (tmp_path / TSV).write_text(windows(first) + windows(second))
    assert [dialogue.turns for dialogue in read("esconv", "valid", tmp_path)] == [tuple(first), tuple(second)]


def test_the_supporters_text_may_begin_with_a_bracket(tmp_path):
    turns = [seeker("Hi."), supporter("[waves] Hi.", "other")]
    (tmp_path / TSV).write_text(windows(turns))
    assert read("esconv", "valid", tmp_path) == [Dialogue(tuple(turns), "valid-1")]


def test_the_seekers_text_may_begin_with_a_bracket(tmp_path):
    turns = [seeker("[sighs] Hi."), supporter("Hi there.", "other")]
    (tmp_path / TSV).write_text(windows(turns))
    assert read("esconv", "valid", tmp_path) == [Dialogue(tuple(turns), "valid-1")]
    assert report("esconv", "valid", tmp_path) == ({}, {"lines": 1})


def test_a_turn_number_of_five_thousand_digits_is_skipped_and_counted(tmp_path):
    (tmp_path / TSV).write_text(f"1.0 0 {'1' * 5000} Hi. EOS 1.0 1 1 [Other] Hi.\n1.0 0 0 Hello.\n")
    assert read("esconv", "valid", tmp_path) == [Dialogue((seeker("Hello."),), "valid-1")]


@pytest.mark.parametrize("text", ["", "[", '[{"dialog": ', "\xff"])
def test_json_that_was_cut_off_is_an_error_that_says_so(tmp_path, text):
    (tmp_path / "ESConv.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(CorpusError, match=r"not whole JSON.*Download it again"):
        read("esconv", "accepted", tmp_path)


@pytest.mark.parametrize("data", [None, 5, True, {"dialog": []}, "text"])
def test_json_that_is_no_list_is_an_error(tmp_path, data):
    (tmp_path / "ESConv.json").write_text(json.dumps(data))
    with pytest.raises(CorpusError):
        read("esconv", "accepted", tmp_path)


def test_json_nested_without_end_is_an_error(tmp_path):
    (tmp_path / "ESConv.json").write_text("[" * 100_000)
    with pytest.raises(CorpusError):
        read("esconv", "accepted", tmp_path)


@pytest.mark.parametrize(
    "conversation",
    [
        None,
        [],
        "text",
        {"dialog": None},
        {"dialog": [None]},
        {"dialog": [{"speaker": "usr", "content": None}]},
        {"dialog": [{"speaker": [], "content": "Hi."}]},
        {"dialog": [{"speaker": "sys", "content": "Hi.", "annotation": {"strategy": 3}}]},
        {"dialog": [{"speaker": "sys", "content": "Hi."}], "survey_score": [1]},
    ],
)
def test_a_conversation_of_the_wrong_shape_is_skipped_and_the_next_read(tmp_path, conversation):
    sound = {"dialog": [{"speaker": "seeker", "content": "Hi."}]}
    (tmp_path / "ESConv.json").write_text(json.dumps([conversation, sound]))
    assert read("esconv", "accepted", tmp_path) == [Dialogue((seeker("Hi."),), "accepted-2")]
    (reason,) = report("esconv", "accepted", tmp_path)[0]
    assert reason.startswith("broken conversation")


def test_splits_are_available_when_their_files_are_there(tmp_path):
    assert reader("esconv").available() == ("valid", "test", "accepted", "failed")
    with pytest.raises(CorpusError, match=r"no .*devWith.*\.tsv.*`listenwell corpus download esconv`"):
        read("esconv", "valid", tmp_path)


@pytest.mark.parametrize("split", ["valid", "test", "accepted", "failed"])
def test_dialogues_go_through_our_jsonl(tmp_path, split):
    items = read("esconv", split)
    assert items
    assert through_jsonl(items, tmp_path) == items
