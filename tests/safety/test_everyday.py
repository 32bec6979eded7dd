"""Everyday turns get a usual answer; stories are left to the generator."""

import pytest

from listenwell.safety.everyday import ANSWERS, everyday_answer, everyday_kind


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Thank you so much!", "thanks"),
        ("thx", "thanks"),
        ("ok bye", "goodbye"),
        ("thanks, bye!", "goodbye"),
        ("hi there", "greeting"),
        ("How are you?", "how_are_you"),
        ("write a python function that reverses a string pls", "request"),
        ("What is the capital of Peru?", "request"),
        ("12 * 7 = ?", "request"),
        ("Can you see me through the camera?", "identity"),
        ("you're useless", "insult"),
        ("Hola, ¿hablas español?", "language"),
        ("как дела", "language"),
        ("🙃🙃", "nonsense"),
        ("sdfkjh qwrtp", "nonsense"),
        ("idk", "unsure"),
        ("ok", "short"),
        ("lol", "laugh"),
    ],
)
def test_everyday_turns(message, kind):
    assert everyday_kind(message) == kind
    assert everyday_answer(message, []) == ANSWERS[kind][0]


@pytest.mark.parametrize(
    "message",
    [
        "My dog died.",
        "Thank you, but I still feel awful.",
        "Hi, my mother is ill.",
        "What should I do about my noisy neighbour?",
        "Can I really do everything alone? I feel so useless.",
        "My boss told me to shut up.",
        "I had to say goodbye to my dog.",
        "I have to go to court tomorrow.",
        "I take care of my mother.",
        "It has been so long.",
        "Can you die of a broken heart?",
        "What is the point of life?",
        "When does the pain stop?",
        "The stupid computer lost my thesis.",
        "He screamed I hate you.",
        "Do you ever feel sad about anything?",
        "When did my life become this?",
        "yes",
        "",
        "42",
    ],
)
def test_stories_and_answers_are_none(message):
    assert everyday_kind(message) is None and everyday_answer(message, []) is None


def test_no_answer_is_given_twice_while_there_is_another():
    first, second = ANSWERS["greeting"]
    assert everyday_answer("hi", [first]) == second
    assert everyday_answer("hi", [first, second]) == second
