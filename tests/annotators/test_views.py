import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from listenwell.annotators.views import context_view, encode_views, marks
from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import WeightsError
from listenwell.runtime.text import Vocabulary
from tests.tiny import BERT_MARKS, encoder_pieces, tiny_bert_tokenizer, tiny_tokenizer

VOCABULARY, PIECES = Vocabulary(tiny_bert_tokenizer()), encoder_pieces()
CLS, SEP = PIECES["[CLS]"], PIECES["[SEP]"]
texts = st.text() | st.lists(st.sampled_from([*BERT_MARKS, "sad", " ", "\u200b", "\ud800", "🙂"])).map(
    "".join
)
views = st.lists(st.tuples(texts, st.booleans()), min_size=1, max_size=5).map(tuple)


def encoded(*view, limit=64):
    (found,) = encode_views(VOCABULARY, [view], limit)
    return found


def spelled(found):
    """The tokens as pieces."""
    names = {number: piece for piece, number in PIECES.items()}
    return " ".join(names[int(number)] for number in found.tokens)


def test_one_utterance_is_a_dialogue_of_one_turn():
    found = encoded(("I am SAD", False))
    assert found.tokens.tolist() == [CLS, PIECES["i"], PIECES["am"], PIECES["sad"], SEP]
    assert found.types.tolist() == [0, 0, 0, 0, 0]
    assert found.last == (1, 4)
    assert (len(found), found.tokens.dtype, found.types.dtype) == (5, np.int32, np.int8)


def test_the_listeners_words_and_the_mark_after_them_are_of_type_one():
    found = encoded(("I am sad", False), ("sorry", True), ("my dog died", False))
    assert spelled(found) == "[CLS] i am sad [SEP] sorry [SEP] my dog died [SEP]"
    assert found.types.tolist() == [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0]
    assert found.last == (7, 10)


def test_the_first_mark_is_of_the_first_turns_type():
    assert encoded(("so", True), ("sad", False)).types.tolist() == [1, 1, 1, 0, 0]
    # Four tokens have no room for the listener's turn: the mark is of the one that is left.
    assert encoded(("so", True), ("sad", False), limit=4).types.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        # 10 tokens have room for 8 words and marks after the first mark and before the last one.
        # Alone, a turn keeps its beginning.
        (("i am so sorry happy to hear that is great",), "[CLS] i am so sorry happy to hear that [SEP]"),
        # What fits is whole, the last turn's long end too.
        (("sad", "i am so sorry to hear"), "[CLS] sad [SEP] i am so sorry to hear [SEP]"),
        # The oldest words go: 5 words before 3 are one too many.
        (("i am so sorry happy", "my dog died"), "[CLS] am so sorry happy [SEP] my dog died [SEP]"),
        # Whole turns go, and no mark is left of them.
        (("so sad", "i am so sorry", "my dog died"), "[CLS] i am so sorry [SEP] my dog died [SEP]"),
        (("so sad", "i am sorry", "my dog died"), "[CLS] i am sorry [SEP] my dog died [SEP]"),
        # A long last turn leaves half of the room to those before.
        (
            ("i am so sorry happy to", "my dog died the new job is"),
            "[CLS] sorry happy to [SEP] my dog died the [SEP]",
        ),
        # And more of it than half where they do not need that.
        (("sad", "my dog died the new job is great"), "[CLS] sad [SEP] my dog died the new job [SEP]"),
    ],
)
def test_the_newest_words_are_kept_worked_by_hand(view, wanted):
    found = encoded(*((text, False) for text in view), limit=10)
    assert spelled(found) == wanted
    first, end = found.last
    shown = " ".join(wanted.split()[first:end])
    assert end == len(found) - 1 and view[-1].startswith(shown) and len(shown) > 1


@settings(deadline=None)
@given(views, st.integers(4, 24))
def test_whatever_is_said_the_shape_holds(view, limit):
    found = encoded(*view, limit=limit)
    tokens = found.tokens.tolist()
    first, end = found.last
    assert len(tokens) <= limit and len(found.types) == len(tokens)
    assert tokens[0] == CLS and CLS not in tokens[1:]  # nobody types a mark
    assert tokens[-1] == SEP and end == len(tokens) - 1
    words = [VOCABULARY.encode(text) for text, _ in view]
    assert tokens[first:end] == words[-1][: end - first]
    assert set(found.types[first : end + 1].tolist()) == {int(view[-1][1])}
    earlier = [token for turn in words[:-1] if turn for token in (*turn, SEP)]
    assert tokens[1:first] == earlier[len(earlier) - first + 1 :]
    if 2 + len(earlier) + len(words[-1]) <= limit:
        assert tokens == [CLS, *earlier, *words[-1], SEP]
    else:
        assert len(tokens) >= limit - 1  # one place cannot hold a word and its mark


def test_a_turn_of_which_nothing_is_left_takes_nothing_with_it():
    # A zero-width space is a text, but has no tokens.
    found = encoded(("i am sad", False), ("\u200b", True), ("my dog died", False))
    assert spelled(found) == "[CLS] i am sad [SEP] my dog died [SEP]"
    assert found.types.tolist() == [0] * 9
    alone = encoded(("\u200b", True))
    assert (spelled(alone), alone.types.tolist(), alone.last) == ("[CLS] [SEP]", [1, 1], (1, 1))


def test_typed_marks_are_letters():
    found = encoded(("[SEP][CLS]", False))
    assert spelled(found) == "[CLS] [ s ##e ##p ] [ c ##l ##s ] [SEP]"


def test_over_long_texts_and_lone_surrogates():
    long = encoded(("sad " * 50_000, False), ("so " * 50_000, True))
    # 62 places: 31 for the last turn, 30 and a mark for the one before.
    assert spelled(long) == f"[CLS] {'sad ' * 30}[SEP] {'so ' * 31}[SEP]"
    assert spelled(encoded(("sad \ud800\udfff", False))).startswith("[CLS] sad")


def test_equal_texts_are_encoded_once(monkeypatch):
    asked = []

    class Counting(Vocabulary):
        def encode_many(self, texts):
            asked.append(list(texts))
            return super().encode_many(texts)

    first, second = encode_views(
        Counting(tiny_bert_tokenizer()),
        [(("sad", False),), (("sad", True), ("so", False), ("sad", False))],
        64,
    )
    assert asked == [["sad", "so"]]
    assert (spelled(first), spelled(second)) == ("[CLS] sad [SEP]", "[CLS] sad [SEP] so [SEP] sad [SEP]")


def test_marks_of_both_families_of_models():
    assert marks(VOCABULARY) == (2, 3)
    assert marks(Vocabulary(tiny_tokenizer())) == (1, 2)
    with pytest.raises(WeightsError, match=r"neither \[CLS\] and \[SEP\].*BERT family"):
        marks(Vocabulary(Tokenizer(models.WordPiece({"[CLS]": 0, "[SEP]": 1}, unk_token="[CLS]"))))


def test_a_context_ends_where_it_is_told_to_and_knows_who_listens():
    turns = (Turn("ann", "one"), Turn("bo", "two"), Turn("ann", "three"))
    dialogue = Dialogue(turns, listener="ann")
    assert context_view(dialogue) == (("one", True), ("two", False), ("three", True))
    assert context_view(dialogue, 2) == (("one", True), ("two", False))
    assert context_view(Dialogue(turns), 1) == (("one", False),)
