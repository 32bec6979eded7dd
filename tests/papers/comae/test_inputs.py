import numpy as np
import pytest

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS
from listenwell.papers.comae.config import ComaeConfig
from listenwell.papers.comae.inputs import NOTHING, Inputs, collate
from listenwell.runtime.text import Vocabulary
from listenwell.training.batching import by_length
from tests.papers.comae.talks import told_examples
from tests.tiny import tiny_tokenizer

VOCABULARY = Vocabulary(tiny_tokenizer())
START, END = VOCABULARY.special("<|im_start|>"), VOCABULARY.special("<|im_end|>")
ASK = Factors(mechanisms=("exploration",), act="questioning", expressed_emotion="surprise")
CONTEXT = Dialogue(
    (
        Turn("a", "I am so happy", Factors(act="others", expressed_emotion="joy")),
        Turn("b", "Oh no"),
        Turn("a", "hi", Factors(expressed_emotion="fear")),
    ),
    listener="b",
)


def columns_of(text, speaker, act, expressed_emotion):
    return [[token, speaker, act, expressed_emotion] for token in [*VOCABULARY.encode(text), END]]


def test_context_and_reply_as_the_paper_lays_them_out():
    encoded = Inputs(VOCABULARY, ComaeConfig()).encode(Example(CONTEXT, Turn("b", "What happened?", ASK)), 99)
    words = VOCABULARY.encode("What happened?")
    expected = [
        *columns_of("I am so happy", 0, ACTS.index("others"), EXPRESSED_EMOTIONS.index("joy")),
        *columns_of("Oh no", 1, NOTHING, NOTHING),
        *columns_of("hi", 0, NOTHING, EXPRESSED_EMOTIONS.index("fear")),
    ]
    assert encoded.context == len(expected)
    expected += [[token, 1, NOTHING, NOTHING] for token in (START, *words)]
    assert encoded.columns.tolist() == expected
    assert encoded.labels.tolist() == [*words, END]
    assert encoded.factors.tolist() == [
        0,
        0,
        1,
        ACTS.index("questioning"),
        EXPRESSED_EMOTIONS.index("surprise"),
    ]
    assert (encoded.words, encoded.bytes, encoded.weight) == (2, 14, len(words) + 1)


def test_a_factor_that_is_not_in_use_is_nowhere():
    inputs = Inputs(VOCABULARY, ComaeConfig(factors=("act",)))
    encoded = inputs.encode(Example(CONTEXT, Turn("b", "What?", ASK)), 99)
    assert encoded.factors.tolist() == [NOTHING] * 3 + [ACTS.index("questioning"), NOTHING]
    assert set(encoded.columns[:, 3].tolist()) == {NOTHING}
    assert encoded.columns[0, 2] == ACTS.index("others")
    vanilla = Inputs(VOCABULARY, ComaeConfig(factors=()))
    assert set(vanilla.encode(Example(CONTEXT, Turn("b", "What?")), 99).columns[:, 2:].flat) == {NOTHING}
    assert vanilla.is_known(vanilla.numbers(None)) and not inputs.is_known(
        inputs.numbers(Factors(expressed_emotion="joy"))
    )


def test_numbers_and_plans_are_two_spellings_of_one_thing():
    inputs = Inputs(VOCABULARY, ComaeConfig())
    assert inputs.plan(inputs.numbers(ASK), "sad") == Factors(
        "sad", ("exploration",), "questioning", "surprise"
    )
    none = Factors(mechanisms=(), act="others", expressed_emotion="neutral")
    assert inputs.numbers(none)[:3].tolist() == [0, 0, 0] and inputs.plan(inputs.numbers(none)) == none
    assert inputs.numbers(Factors()).tolist() == [NOTHING] * 5


def test_the_oldest_turns_go_first_and_a_reply_without_room_is_none():
    inputs, example = Inputs(VOCABULARY, ComaeConfig()), Example(CONTEXT, Turn("b", "What?", ASK))
    whole = inputs.encode(example, 99)
    first = len(columns_of("I am so happy", 0, 0, 0))
    cut = inputs.encode(example, len(whole) - 1)
    assert cut.columns.tolist() == whole.columns[first:].tolist()
    last = len(columns_of("hi", 0, 0, 0)) + len(inputs.reply(VOCABULARY.encode("What?")))
    assert len(inputs.encode(example, last)) == last
    assert inputs.encode(example, last - 1) is None and inputs.encode(example, 2) is None


def test_a_context_says_what_was_left_out():
    inputs = Inputs(VOCABULARY, ComaeConfig())
    whole = inputs.context(CONTEXT, 99)
    assert whole.notices == ()
    assert inputs.context(CONTEXT, len(whole.columns) - 1).notices == (
        "The talk is long: the 1 oldest turns were left out.",
    )
    long = inputs.context(Dialogue((Turn("a", "happy " * 50),)), 20)
    assert len(long.columns) == 20 and long.columns[-1, 0] == END
    assert long.notices[0].startswith("The text was too long: its first")


def test_a_mark_in_a_text_stays_text():
    inputs = Inputs(VOCABULARY, ComaeConfig())
    tokens = inputs.context(Dialogue((Turn("a", "<|im_end|> hi"),)), 99).columns[:, 0].tolist()
    assert tokens.count(END) == 1 and tokens[-1] == END


def test_a_batch_by_hand():
    inputs = Inputs(VOCABULARY, ComaeConfig())
    pieces = [
        inputs.encode(Example(Dialogue((Turn("a", "a"),)), Turn("b", "b", ASK)), 99),  # a END START b
        inputs.encode(Example(Dialogue((Turn("a", "ab"),)), Turn("b", "a", ASK)), 99),
    ]
    (one, two), (a, b) = map(len, pieces), (VOCABULARY.encode("a")[0], VOCABULARY.encode("b")[0])
    batch = collate(pieces, [[0, 1]], 12, 2)
    assert one == 4 and batch.columns.shape == (2, 12, 4)
    assert batch.columns[0, :4, 0].tolist() == [a, END, START, b]
    assert batch.segments[0].tolist() == [1] * 4 + [2] * two + [0] * (8 - two)
    assert batch.positions[0].tolist() == [0, 1, 2, 3, *range(two), *[0] * (8 - two)]
    assert batch.owners[0].tolist() == [0, 0, 1, 1, *[0] * (two - 2), 2, 2, *[0] * (8 - two)]
    assert batch.ends.tolist() == [1, 4 + two - 3]
    assert batch.sources.tolist() == [2, 3, two + 2, two + 3]
    assert batch.labels.tolist() == [b, END, a, END]
    assert (batch.size, batch.weight) == (4 + two, 4)
    assert not batch.segments[1].any() and (batch.columns[1, :, 1:] == NOTHING).all()


def test_every_piece_is_measured_once():
    inputs = Inputs(VOCABULARY, ComaeConfig())
    pieces = [inputs.encode(example, 99) for example in told_examples(9)]
    numbers = []
    for group in by_length(np.array([len(piece) for piece in pieces]), 100):
        numbers += group
        assert len(group) * max(len(pieces[number]) for number in group) <= 100
    assert sorted(numbers) == list(range(len(pieces)))


def test_a_vocabulary_with_gpt2s_one_mark():
    class OneMark(Vocabulary):
        def special(self, token):
            return super().special("<|nothing|>" if token.startswith("<|im") else token)

    inputs = Inputs(OneMark(tiny_tokenizer()), ComaeConfig())
    assert inputs.start == inputs.end == VOCABULARY.special("<|endoftext|>")


@pytest.mark.parametrize("name", ["mechanisms", "act", "expressed_emotion"])
def test_a_reply_needs_every_factor_in_use(name):
    inputs = Inputs(VOCABULARY, ComaeConfig())
    known = {"mechanisms": (), "act": "others", "expressed_emotion": "joy"}
    assert inputs.is_known(inputs.numbers(Factors(**known)))
    assert not inputs.is_known(inputs.numbers(Factors(**known | {name: None})))
