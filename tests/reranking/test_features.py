import pytest

from listenwell.dialogue import Dialogue, Turn
from listenwell.reranking.features import (
    ENOUGH_WORDS,
    brevity,
    copied_persona,
    echo,
    generic_question,
    generic_response,
    loops,
    repeated_from,
    repetition,
    stock_phrases,
    unfinished,
)
from listenwell.reranking.self_disclosure.unsupported import words_with_spans
from listenwell.words import longest_common_run, sentences


@pytest.mark.parametrize(
    ("reply", "missing"),
    [
        ("Good luck.", 1 - 2 / ENOUGH_WORDS),
        ("", 1.0),
        ("one two three four five six seven eight nine", 0.0),
    ],
)
def test_words_that_are_missing(reply, missing):
    assert brevity(reply) == pytest.approx(missing)
    assert brevity(f"{reply} and so on and on and on and on it goes") == 0.0


def test_words_have_spans():
    text = "It ' s fun, dont you"
    assert [(word.text, text[word.start : word.end]) for word in words_with_spans(text)] == [
        ("it", "It ' s"),
        ("is", "It ' s"),
        ("fun", "fun"),
        (",", ","),
        ("do", "dont"),
        ("not", "dont"),
        ("you", "you"),
    ]


def test_sentences_and_runs():
    assert sentences("Oh no! 3.5 miles? ...") == [("oh", "no"), ("3", "5", "miles")]
    assert longest_common_run(list("abcabcd"), list("xabcd")) == 4
    assert longest_common_run([], ["a"]) == 0


def test_stock_phrases_by_their_share():
    assert stock_phrases("I'm so sorry to hear that.") == ("sorry to hear", "i am so sorry")
    assert generic_response("I'm so sorry to hear it.") == pytest.approx(
        1.0
    )  # "i'm" is one word, and counts twice
    assert generic_response("Good luck with the new job in June!") == pytest.approx(2 / 8)
    assert generic_response("What happened?") == 0
    assert generic_response("...") == 0


def test_what_the_listener_repeated_from():
    # five words, two runs of four; the first was said
    assert repeated_from("what did you do after that", ["So what did you do?"]) == 1  # but for a word or two
    assert repeated_from("How did you manage to get promoted? Wow!", ["How did you get promoted?"]) == 1 / 2
    assert repeated_from("Did you talk to him?", ["Did you try to talk to him about it?"]) == 1
    assert repeated_from("I hope you feel better soon", ["I hope you get some rest."]) == 0
    assert repeated_from("and what did you do in the end that day", ["So what did you do then?"]) > 0
    assert repeated_from("That is sad. How old was he?", ["That is sad."]) == pytest.approx(1 / 2)
    assert repeated_from("Oh no! How old was he?", ["Oh no! A dog?"]) == 0
    assert repeated_from("...", ["..."]) == 0


def test_loops_in_a_reply():
    assert loops("That is sad. That is sad.") == pytest.approx(1 / 2)
    assert loops("so so so so sad") == pytest.approx(1 / 3)  # so so so twice among three runs
    assert loops("That is sad. I hope it gets better.") == 0
    assert loops("ok") == 0


def test_the_other_persons_words():
    said = "my dog ran away from home last night and i am sad"
    assert echo("oh my dog ran away from home", said) == pytest.approx(6 / 7)
    assert echo("your dog ran away from home?", said) == 0  # five words in a row
    assert echo("i am sad", said) == 1
    assert echo("sad", said) == 0
    assert echo("", said) == 0


def test_the_worst_way_of_repeating_counts():
    talk = Dialogue(
        (
            Turn("speaker", "My cat is ill and I do not sleep."),
            Turn("listener", "Has she seen a vet yet?"),
            Turn("speaker", "Yes, today."),
        )
    )
    assert repetition("Has she seen a vet yet?", talk) == 1
    assert repetition("My cat is ill and I do not sleep.", talk) == 0  # only the last turn is echoed
    assert repetition("What did he say? What did he say?", talk) == pytest.approx(1 / 2)
    assert repetition("That is tough.", Dialogue((Turn("listener", "Hello."),))) == 0


def test_persona_lines_are_not_read_out():
    persona = ("i like to go hiking with my two dogs.", "i have a dog.")
    assert copied_persona("Oh, I like to go hiking with friends!", persona) == pytest.approx(6 / 9)
    assert copied_persona("I have a dog.", persona) == 0  # four words are everybody's
    assert copied_persona("I like to go home", persona) == 0
    assert copied_persona("Hello.", ()) == 0


@pytest.mark.parametrize(
    "reply", ["I think that…", "I am sorry,", "I went to the", "It is my", "", 'He said "my"']
)
def test_cut_off_replies(reply):
    assert unfinished(reply)


@pytest.mark.parametrize(
    "reply", ["I would love to", "That is great", "Good. :)", "What is that?", "Wait..."]
)
def test_whole_replies(reply):
    assert not unfinished(reply)


def test_generic_questions():
    assert generic_question("What happened?")
    assert generic_question("Oh really? Why is that?")
    assert not generic_question("What happened to the cat?")
    assert not generic_question("Why?! Tell me.")
    assert not generic_question("What did you do and what did he do?")  # more than six words
