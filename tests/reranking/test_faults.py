import pytest

from listenwell.dialogue import Dialogue, Turn
from listenwell.reranking.copied import copied
from listenwell.reranking.generic_response import generic_share, stock_phrases
from listenwell.reranking.repeated import loops, parroted, repeated, said_before
from listenwell.words import longest_common_run, sentences
from listenwell.reranking.self_disclosure.spans import placed
from listenwell.reranking.unfinished import generic_question, unfinished


def test_words_know_their_places():
    text = "It ' s fun, dont you"
    assert [(word.text, text[word.start : word.end]) for word in placed(text)] == [
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
    assert generic_share("I'm so sorry to hear it.") == pytest.approx(
        1.0
    )  # "i'm" is one word, and counts twice
    assert generic_share("Good luck with the new job in June!") == pytest.approx(2 / 8)
    assert generic_share("What happened?") == 0
    assert generic_share("...") == 0


def test_what_the_listener_said_before():
    # five words, two runs of four; the first was said
    assert said_before("what did you do after that", ["So what did you do?"]) == 1  # but for a word or two
    assert said_before("How did you manage to get promoted? Wow!", ["How did you get promoted?"]) == 1 / 2
    assert said_before("Did you talk to him?", ["Did you try to talk to him about it?"]) == 1
    assert said_before("I hope you feel better soon", ["I hope you get some rest."]) == 0
    assert said_before("and what did you do in the end that day", ["So what did you do then?"]) > 0
    assert said_before("That is sad. How old was he?", ["That is sad."]) == pytest.approx(1 / 2)
    assert said_before("Oh no! How old was he?", ["Oh no! A dog?"]) == 0
    assert said_before("...", ["..."]) == 0


def test_loops_in_a_reply():
    assert loops("That is sad. That is sad.") == pytest.approx(1 / 2)
    assert loops("so so so so sad") == pytest.approx(1 / 3)  # so so so twice among three runs
    assert loops("That is sad. I hope it gets better.") == 0
    assert loops("ok") == 0


def test_the_others_words_in_ones_own_mouth():
    said = "my dog ran away from home last night and i am sad"
    assert parroted("oh my dog ran away from home", said) == pytest.approx(6 / 7)
    assert parroted("your dog ran away from home?", said) == 0  # five words in a row
    assert parroted("i am sad", said) == 1
    assert parroted("sad", said) == 0
    assert parroted("", said) == 0


def test_the_worst_way_of_repeating_counts():
    talk = Dialogue(
        (
            Turn("speaker", "My cat is ill and I do not sleep."),
            Turn("listener", "Has she seen a vet yet?"),
            Turn("speaker", "Yes, today."),
        )
    )
    assert repeated("Has she seen a vet yet?", talk) == 1
    assert repeated("My cat is ill and I do not sleep.", talk) == 0  # only the last turn is parroted
    assert repeated("What did he say? What did he say?", talk) == pytest.approx(1 / 2)
    assert repeated("That is tough.", Dialogue((Turn("listener", "Hello."),))) == 0


def test_persona_lines_are_not_read_out():
    persona = ("i like to go hiking with my two dogs.", "i have a dog.")
    assert copied("Oh, I like to go hiking with friends!", persona) == pytest.approx(6 / 9)
    assert copied("I have a dog.", persona) == 0  # four words are everybody's
    assert copied("I like to go home", persona) == 0
    assert copied("Hello.", ()) == 0


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


def test_bare_questions():
    assert generic_question("What happened?")
    assert generic_question("Oh really? Why is that?")
    assert not generic_question("What happened to the cat?")  # it heard of a cat
    assert not generic_question("Why?! Tell me.")
    assert not generic_question("What did you do and what did he do?")  # more than six words
