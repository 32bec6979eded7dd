from dataclasses import replace

import numpy as np
import pytest

from listenwell import checkpoint
from listenwell.annotators.fasttext import KIND, FastTextClassifier, FastTextConfig
from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.errors import CheckpointError, InputError, UnknownNameError
from listenwell.rankers.config import RankerConfig
from listenwell.rankers.inputs import NOTHING, Inputs, stacked
from listenwell.runtime.text import Vocabulary
from tests.tiny import tiny_bert_tokenizer

VOCABULARY = Vocabulary(tiny_bert_tokenizer())
CLS, SEP = VOCABULARY.special("[CLS]"), VOCABULARY.special("[SEP]")
WORDS = VOCABULARY.encode
TALK = Dialogue(
    (Turn("a", "my dog died"), Turn("b", "so sorry"), Turn("a", "i am sad")),
    listener="b",
    personas=(Persona("a", ("the dog",)), Persona("b", ("i am happy", "good luck"))),
)
LABELS = ("happy", "sorry to hear")


def inputs(**config):
    return Inputs(VOCABULARY, RankerConfig(**config))


def as_lists(text):
    return text.tokens.tolist(), text.types.tolist(), text.parts.tolist()


@pytest.fixture
def classifier(tmp_path):
    """Says "sorry to hear" of texts with more of "sad" than of "good", and "happy" of all others."""
    config = FastTextConfig("mood", LABELS, 2, 0, ("good", "sad"))
    vectors = np.array([[0.1, 0], [1, 0], [0, 1]])
    with checkpoint.writing(tmp_path / "bag", KIND) as folder:
        FastTextClassifier(config, vectors, np.eye(2), np.zeros(2)).save(folder)
    return str(tmp_path / "bag")


def test_a_context_is_its_turns_with_marks_segments_and_parts():
    (found,) = inputs().contexts([TALK])
    tokens, types, parts = as_lists(found)
    assert tokens == [CLS, *WORDS("my dog died"), SEP, *WORDS("so sorry"), SEP, *WORDS("i am sad"), SEP]
    # The words of who replies are 1; a mark belongs to the turn before it, the first to the first.
    assert types == [0] * 5 + [1] * 3 + [0] * 4
    assert parts == [1] * 5 + [2] * 3 + [3] * 4
    assert (found.tokens.dtype, found.types.dtype, found.parts.dtype) == (np.int32, np.int8, np.int16)


def test_a_reply_is_one_turn_of_who_replies_and_a_persona_all_theirs():
    (reply,) = inputs().replies(["so sorry !"])
    assert as_lists(reply) == ([CLS, *WORDS("so sorry !"), SEP], [1] * 5, [1] * 5)
    (persona,) = inputs().personas([TALK])
    tokens, types, parts = as_lists(persona)
    assert tokens == [CLS, *WORDS("i am happy"), SEP, *WORDS("good luck"), SEP]
    assert types == [1] * 8 and parts == [1] * 5 + [2] * 3


def test_who_replies_decides_whose_persona_is_read():
    (persona,) = inputs().personas([replace(TALK, listener="a")])
    assert persona.tokens.tolist() == [CLS, *WORDS("the dog"), SEP]
    nobody = replace(TALK, listener="c")
    without = replace(TALK, personas=())
    assert inputs().personas([nobody, TALK, without])[::2] == [NOTHING, NOTHING]
    assert len(inputs().personas([nobody, TALK])[1]) == 8


@pytest.mark.parametrize(("turns", "kept"), [(6, 6), (2, 2), (9, 8)])
def test_the_newest_turns_are_read(turns, kept):
    said = ["my", "dog", "died", "so", "sorry", "i", "am", "sad"]
    talk = Dialogue(tuple(Turn("ab"[number % 2], word) for number, word in enumerate(said)), listener="b")
    (found,) = inputs(turns=turns).contexts([talk])
    wanted = [token for word in said[-kept:] for token in (*WORDS(word), SEP)]
    assert found.tokens.tolist() == [CLS, *wanted]
    assert found.parts.tolist() == [1, *(part for part in range(1, kept + 1) for _ in range(2))]
    generators = [number % 2 for number in range(8)][-kept:]
    assert found.types.tolist() == [generators[0], *(kind for kind in generators for _ in range(2))]


def test_long_texts_lose_their_oldest_words_and_replies_their_end():
    config = {"context_tokens": 9, "persona_tokens": 8, "reply_tokens": 8}
    long = Dialogue((Turn("a", "my dog died so sad"), Turn("b", "i am sorry")), listener="b")
    (context,) = inputs(**config).contexts([long])
    assert context.tokens.tolist() == [CLS, *WORDS("died so sad"), SEP, *WORDS("i am sorry"), SEP]
    assert context.types.tolist() == [0] * 5 + [1] * 4 and context.parts.tolist() == [1] * 5 + [2] * 4
    (reply,) = inputs(**config).replies(["i am so sorry to hear that my dog died"])
    assert reply.tokens.tolist() == [CLS, *WORDS("i am so sorry to hear"), SEP]
    (persona,) = inputs(**config).personas([TALK])
    assert len(persona) == 8
    (persona,) = inputs(**config).personas([replace(TALK, personas=(Persona("b", ("i am sad",) * 4),))])
    assert len(persona) <= 8 and persona.tokens[-5:].tolist() == [SEP, *WORDS("i am sad"), SEP]


def many_lines(count, identity=""):
    lines = tuple(f"the job {number}" for number in range(count))
    return Dialogue((Turn("a", "hi"),), identity, (Persona("b", lines),), "b")


def lines_of(text):
    ends = np.flatnonzero(text.tokens == SEP)
    begins = [1, *(ends[:-1] + 1)]
    return [VOCABULARY.decode(text.tokens[a:b].tolist()) for a, b in zip(begins, ends, strict=True)]


def test_a_choice_of_persona_lines_is_fixed_and_never_more_than_asked():
    few = inputs(persona=3)
    (one,) = few.personas([many_lines(9, "x")])
    again, _ = Inputs(VOCABULARY, RankerConfig(persona=3)).personas([many_lines(9, "x"), many_lines(9, "y")])
    assert as_lists(one) == as_lists(again) and one.parts.max() == 3
    assert len(set(lines_of(one))) == 3 and set(lines_of(one)) <= {f"the job {n}" for n in range(9)}
    # No place in the list is favoured: over many talks all lines are chosen about as often.
    chosen = [line for n in range(300) for line in lines_of(few.personas([many_lines(9, str(n))])[0])]
    counts = [chosen.count(f"the job {number}") for number in range(9)]
    assert sum(counts) == 900 and min(counts) > 70 and max(counts) < 130
    # Where there are not too many, all stand in their order.
    assert lines_of(few.personas([many_lines(3)])[0]) == ["the job 0", "the job 1", "the job 2"]
    assert few.personas([many_lines(9, "x")])[0].parts.max() == 3
    assert inputs(persona=0).personas([many_lines(3)]) == [NOTHING]


def test_special_tokens_in_a_text_stay_text():
    talk = Dialogue(
        (Turn("a", "[SEP] i [CLS] am [PAD]"),), listener="b", personas=(Persona("b", ("[SEP]",)),)
    )
    made = inputs()
    found = [*made.contexts([talk]), *made.personas([talk]), *made.replies(["[SEP] [CLS] sad"])]
    for text in found:
        assert text.tokens[0] == CLS and text.tokens[-1] == SEP
        assert not set(text.tokens[1:-1].tolist()) & VOCABULARY.special_ids - {VOCABULARY.special("[UNK]")}
        assert set(text.parts.tolist()) == {1}


def test_texts_without_a_token_are_still_texts():
    talk = Dialogue((Turn("a", "\u200b"), Turn("b", "i am")), listener="b")
    (context,), (reply,) = inputs().contexts([talk]), inputs().replies(["\u200b"])
    assert context.tokens.tolist() == [CLS, *WORDS("i am"), SEP]
    assert as_lists(reply) == ([CLS, SEP], [1, 1], [1, 1])


def test_a_label_stands_after_the_first_mark_of_contexts_and_replies_never_of_personas(classifier):
    made = inputs(prepend=classifier)
    context, good = made.contexts([TALK, Dialogue((Turn("b", "good"),), listener="b")])
    label = WORDS("sorry to hear")
    assert context.tokens.tolist() == [CLS, *label, *inputs().contexts([TALK])[0].tokens.tolist()[1:]]
    assert context.types.tolist() == [0] * 8 + [1] * 3 + [0] * 4
    assert context.parts.tolist() == [1] * 8 + [2] * 3 + [3] * 4
    assert as_lists(good) == ([CLS, *WORDS("happy"), *WORDS("good"), SEP], [1] * 4, [1] * 4)
    sad, neither = made.replies(["so sad", "my dog"])
    assert sad.tokens.tolist() == [CLS, *label, *WORDS("so sad"), SEP]
    assert as_lists(neither) == ([CLS, *WORDS("happy my dog"), SEP], [1] * 5, [1] * 5)
    known = [replace(TALK, personas=(Persona("b", ("i am sad",)),))]
    assert as_lists(made.personas(known)[0]) == as_lists(inputs().personas(known)[0])


def test_the_label_of_a_context_is_that_of_the_turns_that_are_read(classifier):
    talk = Dialogue((Turn("a", "sad sad sad"), Turn("a", "good")), listener="b")
    first, last = (inputs(prepend=classifier, turns=turns).contexts([talk])[0] for turns in (2, 1))
    assert first.tokens[1:4].tolist() == WORDS("sorry to hear")
    assert last.tokens[1:2].tolist() == WORDS("happy")


def test_what_a_label_leaves_of_a_text_does_not_hang_on_its_neighbours(classifier):
    made = inputs(prepend=classifier, reply_tokens=10, context_tokens=10)
    texts = ["good luck my dog got promoted what happened", "i am so sad my dog died so sad sad"]
    joint, alone = made.replies(texts), [made.replies([text])[0] for text in texts]
    assert [as_lists(one) for one in joint] == [as_lists(one) for one in alone]
    assert max(map(len, joint)) <= 10
    talks = [Dialogue((Turn("a", text),), listener="b") for text in texts]
    joint, alone = made.contexts(talks), [made.contexts([talk])[0] for talk in talks]
    assert [as_lists(one) for one in joint] == [as_lists(one) for one in alone]
    assert max(map(len, joint)) <= 10


def test_the_shipped_classifier_can_be_prepended():
    shipped = FastTextClassifier.load()
    (found,) = inputs(prepend="shipped").replies(["my dog died"])
    label = WORDS(shipped.label("my dog died"))
    assert found.tokens.tolist() == [CLS, *label, *WORDS("my dog died"), SEP]


def test_a_missing_classifier_is_a_clear_error(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        inputs(prepend=str(tmp_path / "none"))


def test_texts_become_rows_of_arrays():
    (reply,) = inputs().replies(["sad"])
    arrays = stacked([NOTHING, reply])
    assert arrays["tokens"].tolist() == [[0, 0, 0], reply.tokens.tolist()]
    assert arrays["types"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert arrays["parts"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}
    assert stacked([NOTHING])["parts"].shape == (1, 1) and stacked([])["tokens"].shape == (0, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"turns": 0}, "ranker.turns is 0"),
        ({"persona": -1}, "ranker.persona is -1"),
        ({"reply_tokens": 7}, "ranker.reply_tokens is 7"),
    ],
)
def test_wrong_numbers_are_named(wrong, message):
    with pytest.raises(InputError, match=message):
        RankerConfig(**wrong)


def test_wrong_names_get_the_near_ones():
    with pytest.raises(UnknownNameError, match="cobert"):
        RankerConfig(model="cobrt")
    with pytest.raises(UnknownNameError, match="words"):
        RankerConfig(backbone="word")
