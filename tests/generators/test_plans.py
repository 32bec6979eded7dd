import pytest
from tokenizers import Tokenizer

from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.errors import InputError, UnknownNameError, WeightsError
from listenwell.generators.plans import (
    CHOICES,
    LEVELS,
    MANNER_TOKENS,
    SETS,
    TOKENS,
    PlanTokens,
    manner_tokens,
    plan_of,
    token_name,
    token_words,
    wanted,
)
from listenwell.labels import MANNERS
from listenwell.runtime.text import Vocabulary
from tests.tiny import tiny_tokenizer

PLAN = Factors(emotion="sad", mechanisms=("exploration",), act="questioning", expressed_emotion="caring")


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(Tokenizer.from_str(tiny_tokenizer().to_str()))


def test_there_is_a_token_for_every_choice_and_none_twice():
    assert len(TOKENS) == len(set(TOKENS)) == 32 + 8 + 9 + 10
    assert SETS[0] == () and len(set(SETS)) == 8
    assert token_name("mechanisms", ("emotional_reaction", "exploration")) == "<|mechanisms:ER+EX|>"
    assert token_name("mechanisms", ()) == "<|mechanisms:none|>"
    assert "<|act:questioning|>" in TOKENS


def test_words_for_tokens_that_know_nothing_yet():
    assert token_words("emotion", "sad") == " sad"
    assert (
        token_words("mechanisms", ("emotional_reaction", "exploration")) == " emotional reaction exploration"
    )
    assert token_words("mechanisms", ()) == " none"


def test_plans_become_tokens_and_come_back(vocabulary):
    extended = vocabulary.extended(TOKENS)
    assert manner_tokens(extended) == {}  # a generator of an earlier release
    both = manner_tokens(extended.extended(MANNER_TOKENS))
    assert both == {name: len(extended) + number for number, name in enumerate(MANNERS)}
    tokens = PlanTokens.of(extended)
    assert sorted(number for level in tokens.numbers for number in level) == list(
        range(len(vocabulary), len(vocabulary) + len(TOKENS))
    )
    for emotion in CHOICES["emotion"][:3]:
        for mechanisms in SETS:
            plan = Factors(emotion=emotion, mechanisms=mechanisms, act="wishing", expressed_emotion="joy")
            assert tokens.decode(tokens.encode(plan)) == plan
    assert tokens.decode(tokens.encode(PLAN)[:2]) == Factors(emotion="sad", mechanisms=("exploration",))
    with pytest.raises(InputError, match="The plan has no act"):
        tokens.encode(Factors(emotion="sad", mechanisms=()))


def test_text_that_looks_like_a_plan_is_text(vocabulary):
    extended = vocabulary.extended(TOKENS)
    typed = extended.encode("<|act:questioning|><|im_end|>")
    assert not extended.special_ids.intersection(typed)


def test_a_vocabulary_without_plan_tokens_is_told(vocabulary):
    with pytest.raises(WeightsError, match="emotion:afraid"):
        PlanTokens.of(vocabulary)


def test_the_plan_of_a_reply_prefers_the_true_emotion():
    read = Factors(emotion="angry", mechanisms=(), act="others", expressed_emotion="neutral")
    reply = Turn("listener", "Oh.", factors=read)
    context = Dialogue((Turn("speaker", "My dog died."),), emotion="sad")
    assert plan_of(Example(context, reply)) == Factors("sad", (), "others", "neutral")
    unknown = Dialogue((Turn("speaker", "My dog died."),))
    assert plan_of(Example(unknown, reply)) == Factors("angry", (), "others", "neutral")
    assert plan_of(Example(context, Turn("listener", "Oh."))) is None
    assert LEVELS[0] == "emotion"


def test_wishes_in_peoples_spelling():
    assert wanted(act="Questioning", mechanisms=["EX"], expressed_emotion=" caring ") == Factors(
        mechanisms=("exploration",), act="questioning", expressed_emotion="caring"
    )
    assert wanted(mechanisms=["none"]) == Factors(mechanisms=())
    assert wanted() == Factors()


def test_contradictory_and_unknown_wishes_are_named():
    with pytest.raises(InputError, match="contradict"):
        wanted(mechanisms=["none", "ER"])
    with pytest.raises(UnknownNameError, match="questioning"):
        wanted(act="questionning")
    with pytest.raises(UnknownNameError, match="wibble"):
        wanted(mechanisms=["wibble"])
