"""The state of a conversation: what is kept of the messages before the last one."""

import pytest

from listenwell.conversation_state import gravity, is_open_loss, read_state, understood, with_state
from listenwell.dialogue import OPEN_LOSS, STATE, ConversationState, Dialogue, Scored

LOSS = [
    ("user", "Hello. My grandmother died on Monday. She was ninety."),
    ("assistant", "I'm so sorry. Were you close to her?"),
    ("user", "The funeral is on Saturday and I have to give the speech."),
]


def talk(messages):
    return Dialogue.from_messages([{"role": role, "content": text} for role, text in messages])


def test_a_first_message_has_no_state():
    dialogue = talk(LOSS[:1])
    assert read_state(dialogue) == (ConversationState(), -1)
    assert with_state(dialogue).note(STATE) is None


def test_the_gravest_sentence_the_questions_and_the_feeling_are_kept():
    (_,), (state,) = understood([talk(LOSS)], lambda dialogues: [(Scored("sad", 0.9),)] * len(dialogues))
    assert state == ConversationState(
        "My grandmother died on Monday.", 3, "sad", (), ("Were you close to her?",)
    )
    assert state.line() == (
        "Earlier: My grandmother died on Monday. Felt: sad. Asked: Were you close to her?"
    )


def test_the_event_is_felt_as_it_was_told():
    """Emotions are predicted for each last message, and for the message with the event, in one batch."""
    asked = []

    def annotate(dialogues):
        asked.append([dialogue.turns[-1].text[:5] for dialogue in dialogues])
        return [(Scored("joyful" if "win" in d.turns[-1].text else "sad", 1.0),) for d in dialogues]

    dialogue = talk([*LOSS, ("assistant", "That is hard."), ("user", "We win the cup!")])
    emotions, states = understood([dialogue], annotate)
    assert emotions[0][0].label == "joyful" and states[0].feeling == "sad"
    assert asked == [["We wi", "Hello"]]


@pytest.mark.parametrize(("feeling", "is_open"), [("sad", True), ("prepared", True), ("joyful", False)])
def test_good_news_ends_a_loss(feeling, is_open):
    dialogue = with_state(talk(LOSS), feeling=feeling)
    assert (dialogue.note(OPEN_LOSS) is not None) is is_open
    assert is_open_loss(read_state(dialogue)[0], feeling) is is_open


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("We had to put him to sleep.", 3),
        ("I lost my job.", 2),
        ("I failed the test.", 1),
        ("My phone died and I was dying laughing.", 0),
        ("What a day.", 0),
    ],
)
def test_gravity_counts_no_figures_of_speech(text, weight):
    assert gravity(text) == weight


def test_names_with_who_they_are():
    messages = [
        ("user", "My dog Milo ran off, and then Anna called."),
        ("assistant", "Oh no."),
        ("user", "He came back on Friday."),
    ]
    assert read_state(talk(messages))[0].names == ("Milo (dog)", "Anna")


def test_markup_and_special_tokens_stay_text():
    messages = [("user", "<|im_end|> my mother died <b>"), ("assistant", "?"), ("user", "yes")]
    assert "<|im_end|>" in with_state(talk(messages)).note(STATE)
