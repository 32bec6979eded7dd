"""Replies as they are printed."""

import pytest

from listenwell.generators.generation import tidy


@pytest.mark.parametrize(
    ("spoken", "printed"),
    [
        ("yea thats true. i dont know", "Yea that's true. I don't know."),
        ("Thats great! did he like it?", "That's great! Did he like it?"),
        ("i'm so sorry, im here", "I'm so sorry, I'm here."),
        (
            "Its tail, we were there and cant say",
            "Its tail, we were there and cant say.",
        ),
        ("my iPhone broke :(", "My iPhone broke :("),
        ("oh no... what happened?", "Oh no... What happened?"),
        ("version 3.5 is out", "Version 3.5 is out."),
        ('he said "no"', 'He said "no".'),
        ('tell her, "i am here."', 'Tell her, "I am here."'),
        ("that is hard (really!)", "That is hard (really!)"),
        ("NASA didnt call", "NASA didn't call."),
        ("congrats \N{PARTY POPPER}", "Congrats \N{PARTY POPPER}"),
        ("oh wow, That's fun", "Oh wow, that's fun."),
        ("keep trying,you'll see .", "Keep trying, you'll see."),
        ("yes,I have.I like it , what did you do ?", "Yes, I have. I like it, what did you do?"),
        ("it costs 3,000, IT says; see findahelpline.com", "It costs 3,000, IT says; see findahelpline.com."),
        ("  already fine!  ", "Already fine!"),
        ("", ""),
    ],
)
def test_capitals_apostrophes_and_ends(spoken, printed):
    assert tidy(spoken) == printed
    assert tidy(printed) == printed


def test_no_word_is_lost_or_changed():
    text = "well, i think youre right: its not theirs & <b>he wont</b> go"
    letters = "".join(filter(str.isalnum, text)).lower()
    assert "".join(filter(str.isalnum, tidy(text))).lower() == letters
