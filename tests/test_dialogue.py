import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell import Candidate, Dialogue, Factors, Persona, Reply, Turn
from listenwell.dialogue import Example, LabelledText, Prediction, Reading, Scored
from listenwell.errors import InputError, ListenwellError
from listenwell.labels import ACTS, EMOTIONS, EMOTIONS_AND_INTENTS, EXPRESSED_EMOTIONS, MECHANISMS, STRATEGIES


def is_unicode(text):
    """Not two surrogates that JSON would join into one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") == text


# Any Unicode, lone surrogates and NUL included.
anything = st.text(st.characters(exclude_categories=()), max_size=30).filter(is_unicode)
texts = anything.filter(lambda text: text and not text.isspace())
notes = st.dictionaries(st.text(max_size=8), anything, max_size=3)
numbers = st.floats(allow_nan=False, allow_infinity=False)


def maybe(labels):
    return st.none() | st.sampled_from(list(labels))


factors = st.builds(
    Factors,
    emotion=maybe(EMOTIONS),
    mechanisms=st.none() | st.lists(st.sampled_from(list(MECHANISMS)), unique=True),
    act=maybe(ACTS),
    expressed_emotion=maybe(EXPRESSED_EMOTIONS),
    intent=maybe(EMOTIONS_AND_INTENTS),
    strategy=maybe(STRATEGIES),
) | st.builds(Factors, levels=st.tuples(*[st.integers(0, 2)] * 3))
turns = st.builds(Turn, texts, texts, st.none() | factors, notes)
dialogues = st.builds(
    Dialogue,
    st.lists(turns, min_size=1, max_size=4),
    id=st.text(),
    personas=st.lists(st.builds(Persona, texts, st.lists(texts)), max_size=2, unique_by=lambda p: p.speaker),
    listener=texts,
    situation=st.none() | texts,
    emotion=maybe(EMOTIONS),
    notes=notes,
)
replies = st.builds(
    Reply,
    texts,
    texts,
    st.integers(0),
    emotion=st.none() | st.lists(st.builds(Scored, st.sampled_from(list(EMOTIONS)), numbers)).map(tuple),
    plan=st.none() | factors,
    candidates=st.lists(
        st.builds(Candidate, texts, st.none() | factors, st.dictionaries(texts, numbers, max_size=2))
    ).map(tuple),
    safety=st.none() | notes.map(lambda n: tuple(n.items())),
    timings=st.dictionaries(texts, numbers, max_size=3),
    notices=st.lists(texts, max_size=2).map(tuple),
)
records = st.one_of(
    dialogues,
    replies,
    turns,
    factors,
    st.builds(LabelledText, texts, st.lists(texts, max_size=3)),
    st.builds(Example, dialogues, turns),
)


@given(records)
def test_json_keeps_everything(record):
    line = record.to_json()
    assert "\n" not in line
    assert type(record).from_json(line) == record
    assert type(record).from_json(line.encode("utf-8")) == record


@given(records)
def test_records_hash_and_pickle(record):
    assert pickle.loads(pickle.dumps(record)) == record
    assert hash(record) == hash(pickle.loads(pickle.dumps(record)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["turns", "text", "speaker", "id", "notes", "factors", "personas", "lines"]),
                inner,
            )
        ),
    )
)
def test_any_json_is_a_dialogue_or_a_clear_error(data):
    try:
        Dialogue.from_dict(data)
    except ListenwellError as error:
        assert error.problem and error.advice


def test_records_cannot_be_changed():
    turn = Turn("speaker", "hello")
    with pytest.raises(FrozenInstanceError):
        turn.text = "bye"


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u2003", None, 3, b"x"])
def test_a_turn_needs_text(text):
    with pytest.raises(InputError, match="needs text"):
        Turn("speaker", text)


def test_a_dialogue_needs_a_turn_and_at_most_one_persona_a_person():
    with pytest.raises(InputError, match="no turns"):
        Dialogue(())
    twice = (Persona("a", ["I run."]), Persona("a", ["I sing."]))
    with pytest.raises(InputError, match="two personas"):
        Dialogue((Turn("a", "hi"),), personas=twice)


def test_persona_lines_are_a_list_of_texts():
    with pytest.raises(InputError, match="not one text"):
        Persona("a", "I run.")
    with pytest.raises(InputError, match="no text"):
        Persona("a", ["I run.", " "])


def test_factors_are_checked_and_put_in_order():
    assert Factors(mechanisms=("exploration", "emotional_reaction")).mechanisms == (
        "emotional_reaction",
        "exploration",
    )
    with pytest.raises(ListenwellError, match="Did you mean 'questioning'"):
        Factors(act="questoning")
    with pytest.raises(ListenwellError, match="expressed emotion"):
        Factors(expressed_emotion="lonely")


@pytest.mark.parametrize("probability", [-0.01, 1.01, float("nan"), float("inf"), float("-inf")])
def test_the_probabilities_of_a_reading_are_from_0_to_1(probability):
    for fine in (0.0, 1.0, 0.5):
        assert Reading("act", (Scored("wishing", fine),)).scores[0].probability == fine
    with pytest.raises(InputError, match=r"'act' has the probability .* from 0 to 1"):
        Reading("act", (Scored("wishing", 0.5), Scored("agreeing", probability)))


def test_a_reading_needs_a_head_and_a_score():
    with pytest.raises(InputError, match="needs a head's name, not ''"):
        Reading("", (Scored("wishing", 0.5),))
    with pytest.raises(InputError, match="'act' has no scores"):
        Reading("act", ())


def test_levels_fix_the_mechanisms():
    assert Factors(levels=(0, 1, 2)).mechanisms == ("interpretation", "exploration")
    assert Factors(levels=(0, 0, 0)).mechanisms == ()
    with pytest.raises(InputError, match="contradict"):
        Factors(levels=(0, 0, 0), mechanisms=("exploration",))
    with pytest.raises(InputError, match="three levels"):
        Factors(levels=(1, 1))


def test_the_order_of_notes_makes_no_difference():
    assert Turn("a", "x", None, {"b": "1", "a": "2"}) == Turn("a", "x", None, (("a", "2"), ("b", "1")))
    assert Turn("a", "x", None, {"b": "1"}).note("b") == "1"
    assert Turn("a", "x").note("b") is None


def test_examples_are_each_reply_of_the_listener_once_with_what_came_before():
    talk = Dialogue(
        (Turn("speaker", "one"), Turn("listener", "two"), Turn("speaker", "three"), Turn("listener", "four"))
    )
    examples = list(talk.examples())
    assert [example.reply.text for example in examples] == ["two", "four"]
    assert [turn.text for turn in examples[1].context.turns] == ["one", "two", "three"]
    assert [example.reply.text for example in talk.examples(everyone=True)] == ["two", "three", "four"]
    assert [example.context.listener for example in talk.examples(everyone=True)] == [
        "listener",
        "speaker",
        "listener",
    ]


def test_a_listener_who_opens_the_talk_replies_to_nobody():
    talk = Dialogue((Turn("listener", "hello"), Turn("speaker", "hi")))
    assert list(talk.examples()) == []


def test_a_persona_is_found_by_its_speaker():
    persona = Persona("listener", ("I run.",))
    talk = Dialogue((Turn("speaker", "hi"),), personas=(persona,))
    assert talk.persona_of("listener") == persona
    assert talk.persona_of("speaker") is None


def test_a_reply_shows_all_parts_and_notices_only_where_there_are_any():
    reply = Reply("Oh!", "prompted", 3)
    assert list(reply.to_dict()) == [
        "reply",
        "model",
        "seed",
        "emotion",
        "plan",
        "candidates",
        "safety",
        "timings",
    ]
    assert replace(reply, notices=("cut",)).to_dict()["notices"] == ["cut"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "object with named fields"),
        ("{}", "lacks the field 'turns'"),
        ('{"turns": []}', "no turns"),
        ('{"turns": [{"speaker": "a", "txt": "b"}]}', "Did you mean 'text'"),
        ('{"turns": [{"speaker": "a", "text": 3}]}', r"turns\[0\].text must be text, not int 3"),
        ('{"turns": [{"speaker": "a", "text": "b"}], "notes": {"a": 1}}', "notes.a must be text"),
        ('{"turns": [{"speaker": "a", "text": "b", "factors": {"levels": [1]}}]}', "must be a list"),
        ('{"turns": "ab"}', "turns must be a list"),
    ],
)
def test_what_does_not_fit_is_named(line, message):
    with pytest.raises(InputError, match=message):
        Dialogue.from_json(line)


def test_messages_become_a_dialogue_and_back():
    messages = [
        {"role": "system", "content": "I have a dog.\nMy name is Kim."},
        {"role": "system", "content": "Answer in one sentence."},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hi!"},
        {"role": "user", "content": "I lost my job."},
    ]
    dialogue = Dialogue.from_messages(messages)
    assert [turn.speaker for turn in dialogue.turns] == ["speaker", "listener", "speaker"]
    assert dialogue.persona_of("listener").lines == ("I have a dog.", "My name is Kim.")
    assert dialogue.note("instruction") == "Answer in one sentence."
    assert dialogue.to_messages() == messages
    assert Dialogue.from_messages(dialogue.to_messages()) == dialogue
    more = Dialogue.from_messages(messages, persona=["I like tea."])
    assert more.persona_of("listener").lines[-1] == "I like tea."
    for wrong in ([{"role": "user"}], [{"role": "tool", "content": "x"}], ["hello"]):
        with pytest.raises(InputError, match="message"):
            Dialogue.from_messages(wrong)


def test_scores_are_a_frozen_mapping():
    candidate = Candidate("Hi.", scores=(("b", 2.0), ("a", 1.0)))
    assert candidate.scores == {"a": 1.0, "b": 2.0} and candidate.scores["b"] == 2.0
    assert dict(candidate.scores) == {"a": 1.0, "b": 2.0} and list(candidate.scores) == ["a", "b"]
    assert candidate == Candidate("Hi.", scores={"a": 1.0, "b": 2.0})
    assert pickle.loads(pickle.dumps(candidate)) == candidate
    assert candidate.to_dict() == {"text": "Hi.", "scores": {"a": 1.0, "b": 2.0}}
    with pytest.raises(TypeError):
        candidate.scores["a"] = 3.0
    with pytest.raises(AttributeError):
        candidate.scores._values = {}
    with pytest.raises(InputError, match="scores"):
        Candidate("Hi.", scores={"a": "high"})


def test_the_name_of_an_earlier_release_is_read():
    assert Factors.from_dict({"tone": "joy"}) == Factors(expressed_emotion="joy")
    assert Prediction("tone", (Scored("joy", 1.0),)).head == "expressed_emotion"
