from dataclasses import replace

import numpy as np
import pytest

from listenwell import Dialogue, Factors, Listener, Persona, Turn
from listenwell.dialogue import MANNER, Example
from listenwell.errors import CheckpointError, InputError, UnknownNameError
from listenwell.generators.decoding import Decoding
from listenwell.generators.planned import PlannedGenerator
from listenwell.generators.planned_config import PlannedConfig
from listenwell.generators.plans import CROWD, PlanTokens, is_whole, known_plans
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.labels import MANNERS
from listenwell.runtime.engines import Engine

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
OTHER = Factors("sad", (), "wishing", "joy")
TALK = Dialogue((Turn("speaker", "My dog died. I am so sad."),))
DECODING = Decoding(temperature=1.2, max_tokens=8, no_repeat=3)


@pytest.fixture(scope="module")
def generator(tiny_generator):
    config = PlannedConfig(plans=3, candidates=6, prompt_tokens=256, decoding=DECODING)
    return PlannedGenerator.load(config, tiny_generator)


@pytest.fixture(scope="module")
def layout(generator):
    tokens = PlanTokens.of(generator.runtime.vocabulary)
    return PromptTemplate(generator.runtime.vocabulary, tokens, generator.config.manner)


def test_a_manner_is_a_token_before_the_plan(generator, layout):
    vocabulary, budget = generator.runtime.vocabulary, 64
    tokens = {name: layout.manner_tokens(replace(TALK, notes=((MANNER, name),))) for name in MANNERS}
    assert len(set(tokens.values())) == len(MANNERS) and all(len(own) == 1 for own in tokens.values())
    assert layout.prompt(TALK, budget).tokens[-1:] == tokens["plain"]
    none = PromptTemplate(vocabulary, layout.plans)
    assert (*none.prompt(TALK, budget - 1).tokens, *tokens["plain"]) == layout.prompt(TALK, budget).tokens
    rich = PlannedGenerator(replace(generator.config, manner="rich"), generator.runtime)
    replies = [own.generate(TALK, (PLAN,), seed=4).candidates for own in (generator, rich)]
    assert replies[0] != replies[1]
    with pytest.raises(UnknownNameError, match="gruff"):
        PlannedConfig(manner="gruff")


def test_plans_are_whole_different_and_as_wanted(generator):
    plans = generator.plan(TALK, None, Factors(act="questioning"), seed=1)
    assert len(plans) == len(set(plans)) == 3
    assert all(is_whole(plan) and plan.act == "questioning" for plan in plans)
    assert generator.plan(TALK, None, PLAN, seed=1) == (PLAN,)
    assert generator.plan(TALK, None, Factors(act="questioning"), seed=1) == plans


def test_replies_are_shared_out_among_plans_and_repeat_with_the_seed(generator):
    first = generator.generate(TALK, (PLAN, OTHER), seed=4)
    assert first == generator.generate(TALK, (PLAN, OTHER), seed=4)
    assert first != generator.generate(TALK, (PLAN, OTHER), seed=5)
    assert {candidate.plan for candidate in first.candidates} == {PLAN, OTHER}
    assert len({candidate.text for candidate in first.candidates}) == len(first.candidates) <= 6
    for candidate in first.candidates:
        assert set(dict(candidate.scores)) == {"likelihood"}
        assert dict(candidate.scores)["likelihood"] < 0


def test_without_a_plan_it_speaks_from_the_dialogue_alone(generator):
    speech = generator.generate(TALK, (), seed=4)
    assert len(speech.candidates) > 1
    assert all(candidate.plan is None for candidate in speech.candidates)


def test_a_plan_changes_what_is_said_and_its_likelihood(generator, layout):
    runtime = generator.runtime
    reply = layout.words("I am so sorry.")
    prompt = layout.prompt(TALK, 256).tokens
    likely = [
        float(runtime.log_likelihoods([*prompt, *layout.plans.encode(plan)], [reply])[0])
        for plan in (PLAN, OTHER)
    ]
    assert likely[0] != pytest.approx(likely[1], abs=1e-3)


@pytest.mark.parametrize("engine", ["onnx", "torch"])
def test_what_the_planner_has_read_is_not_read_again(tiny_generator, engine, monkeypatch):
    """Replies are those of a generator who reads the whole plans; of one's own plan nothing is known."""
    config = PlannedConfig(
        plans=3, candidates=4, decoding=replace(DECODING, temperature=0), engine=Engine(engine, "fp32")
    )
    one, other = PlannedGenerator.load(config, tiny_generator), PlannedGenerator.load(config, tiny_generator)
    talks = [TALK, Dialogue((Turn("speaker", "I am so happy for you! Oh no."),))]
    plans = one.plan_batch([(talk, (), Factors(), seed) for seed, talk in enumerate(talks)])
    asked = [(talk, some, 9) for talk, some in zip(talks, plans, strict=True)]
    wanted = other.generate_batch(asked)
    read = list[int]()
    step = one.runtime.step
    monkeypatch.setattr(
        one.runtime, "step", lambda state, tokens: read.append(len(tokens[0])) or step(state, tokens)
    )
    for _ in range(2):  # what was read stays whole
        read.clear()
        for speech, known in zip(one.generate_batch(asked), wanted, strict=True):
            for candidate, same in zip(speech.candidates, known.candidates, strict=True):
                assert (candidate.text, candidate.plan) == (same.text, same.plan)
                assert dict(candidate.scores) == pytest.approx(dict(same.scores), abs=1e-3)
        assert set(read) == {1}
    read.clear()
    one.generate_batch([(talk, (PLAN,), 9) for talk in talks])
    assert read[0] == 4


def test_perplexities_worked_from_likelihoods(generator, layout, monkeypatch):
    read = Factors(mechanisms=("exploration",), act="questioning", expressed_emotion="caring")
    example = Example(Dialogue(TALK.turns, emotion="sad"), Turn("listener", "What happened?", factors=read))
    # A corpus that notes no manner is the crowd's.
    prompt = replace(layout, manner=CROWD).prompt(TALK, 256).tokens
    words = layout.words("What happened?")

    def expected(plan):
        nats = float(generator.runtime.log_likelihoods([*prompt, *plan], [words])[0])
        return np.exp(-nats / len(words))

    gold = generator.perplexity([example], "gold")
    assert gold.by_token == pytest.approx(expected(layout.plans.encode(PLAN)), rel=1e-4)
    # Without a plan, the first token is known to be none of a plan's.
    probabilities = np.exp(
        generator.runtime.log_likelihoods(prompt, [[token] for token in layout.plans.numbers[0]])
    )
    left = (1 - float(probabilities.astype(np.float64).sum())) ** (1 / len(words))
    assert left < 1 - 1e-4
    assert generator.perplexity([example], "none").by_token == pytest.approx(expected([]) * left, rel=1e-4)
    plain = PlannedGenerator(
        PlannedConfig(plans=1, mechanism_bias=0, interpretation_bias=0), generator.runtime
    )
    crowd = replace(TALK, notes=((MANNER, CROWD),))
    likeliest = plain.plan(crowd, None, Factors(), seed=0)[0]
    assert generator.perplexity([example], "predicted").by_token == pytest.approx(
        expected(layout.plans.encode(likeliest)), rel=1e-4
    )
    marginal = generator.perplexity([example], "marginal").by_token
    assert marginal == generator.perplexity([example], "marginal").by_token
    assert marginal != pytest.approx(gold.by_token, rel=1e-4)
    # Asked about together, replies are as likely as one by one.
    other = Example(
        Dialogue((Turn("speaker", "I am so happy for you!"),), emotion="joyful"),
        Turn("listener", "Oh no!", factors=read),
    )
    for factors in ("gold", "none", "predicted", "marginal"):
        each = [generator.perplexity([one], factors, [seed]).nll for one, seed in ((example, 3), (other, 8))]
        with monkeypatch.context() as patch:
            patch.setattr(type(generator.runtime), "batch_size", 3)
            both = generator.perplexity([example, other], factors, [3, 8])
        assert both.nll == pytest.approx(sum(each), rel=1e-4)
    with pytest.raises(InputError, match="golden"):
        generator.perplexity([example], "golden")
    with pytest.raises(InputError, match="no plan"):
        generator.perplexity([Example(TALK, Turn("listener", "Oh."))], "gold")


def test_the_layout_is_dialogue_plan_words_and_end(layout):
    example = Example(TALK, Turn("listener", "What happened?"))
    laid = layout.example(example, PLAN, 256)
    spelled = layout.vocabulary.decode
    assert laid.tokens[laid.plan : laid.words] == layout.plans.encode(PLAN)
    assert spelled(laid.tokens[laid.words :]) == "What happened?"
    assert laid.tokens[-1] == layout.vocabulary.special("<|im_end|>")
    assert tuple(laid.tokens[: laid.plan]) == layout.prompt(TALK, 256).tokens
    generic_question = layout.example(example, None, 256)
    assert (
        generic_question.plan == generic_question.words
        and generic_question.tokens == laid.tokens[: laid.plan] + laid.tokens[laid.words :]
    )
    alone = layout.alone("What happened?", 256)
    assert spelled(alone.tokens[: alone.words]).strip() == "assistant"
    assert alone.tokens[alone.words :] == laid.tokens[laid.words :]


def test_only_the_listeners_own_persona_stands_before_the_dialogue(layout):
    personas = (Persona("speaker", ("i am a nurse .",)), Persona("listener", ("i like cats .", "i sing .")))
    dialogue = Dialogue(TALK.turns, personas=personas)
    text = layout.vocabulary.decode(layout.prompt(dialogue, 256).tokens)
    assert "i like cats . i sing ." in text
    assert "nurse" not in text
    # A persona of any length leaves room for what was said.
    long = Dialogue(TALK.turns, personas=(Persona("listener", ("i like cats .",) * 200),))
    cut = layout.vocabulary.decode(layout.prompt(long, 128).tokens)
    assert "My dog died. I am so sad." in cut and "i like cats ." in cut


def test_a_hundred_persona_lines_are_no_trouble(generator, monkeypatch):
    lines = tuple(f"i have {number} cats ." for number in range(100))
    encoded = []

    def encode(texts):
        encoded.extend(texts)
        return np.array([[1.0, float("77" in text)] for text in texts])

    monkeypatch.setattr(generator._relevance, "encode", encode)
    talk = Dialogue((Turn("speaker", "You have 77 cats?"),), personas=(Persona("listener", lines),))
    speech = generator.generate(talk, (PLAN,), seed=1)
    assert speech.candidates and "You have 77 cats?" in encoded
    text = generator.runtime.vocabulary.decode(generator._read([talk])[0][0].tokens)
    assert "i have 77 cats ." in text and "i have 50 cats ." not in text


def test_plans_of_replies_that_nobody_annotated_are_read(monkeypatch):
    read = Factors(emotion="angry", mechanisms=(), act="others", expressed_emotion="neutral")
    known = Example(TALK, Turn("listener", "Oh.", factors=read))
    unknown = Example(Dialogue(TALK.turns, emotion="sad"), Turn("listener", "What happened?"))

    class Reads:
        @classmethod
        def load(cls, heads):
            assert "act" in heads and "exploration" in heads
            return cls()

        def annotate_all(self, dialogues, top):
            for dialogue in dialogues:
                last = dialogue.turns[-1]
                assert last.text == "What happened?"
                factors = Factors("joyful", ("exploration",), "questioning", "surprise")
                yield Dialogue((*dialogue.turns[:-1], Turn(last.speaker, last.text, factors=factors)))

    monkeypatch.setattr("listenwell.annotators.annotator.Annotator", Reads)
    found = dict(known_plans([known, unknown]))
    assert found[known] == read
    assert found[unknown] == Factors("sad", ("exploration",), "questioning", "surprise")


def test_a_whole_listener_plans_speaks_and_is_steered(tiny_generator):
    listener = Listener.from_pretrained(
        "planned", weights=tiny_generator, plans=2, candidates=4, without=("understand", "rerank")
    )
    reply = listener.reply("My dog died.", target=Factors(act="wishing"), seed=2)
    assert reply.plan.act == "wishing" and is_whole(reply.plan)
    assert {candidate.plan.act for candidate in reply.candidates} == {"wishing"}
    assert reply == listener.reply("My dog died.", target=Factors(act="wishing"), seed=2) or reply.timings
    plan_dropout = Listener.from_pretrained(
        "planned", weights=tiny_generator, without=("understand", "plan", "rerank")
    )
    assert plan_dropout.reply("My dog died.", seed=2).plan is None


def test_a_folder_of_another_kind_and_odd_settings_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="no such folder"):
        PlannedGenerator.load(PlannedConfig(), tmp_path / "none")
    with pytest.raises(InputError, match="plans is 0"):
        PlannedConfig(plans=0)
    with pytest.raises(InputError, match="annotator_weight"):
        PlannedConfig(annotator_weight=2)


def test_many_dialogues_at_once_get_the_replies_they_get_alone(generator):
    talks = [
        Dialogue((Turn("speaker", text),)) for text in ("My dog died.", "I am so happy for you! Oh no.", "Hi")
    ]
    plans = generator.plan_batch([(talk, (), Factors(), seed) for seed, talk in enumerate(talks)])
    spoken = generator.generate_batch([(talk, plan, 9) for talk, plan in zip(talks, plans, strict=True)])
    for seed, (talk, plan, speech) in enumerate(zip(talks, plans, spoken, strict=True)):
        assert plan == generator.plan(talk, None, Factors(), seed)
        alone = generator.generate(talk, plan, 9)
        assert [one.text for one in speech.candidates] == [one.text for one in alone.candidates]
        for one, other in zip(speech.candidates, alone.candidates, strict=True):
            assert dict(one.scores) == pytest.approx(dict(other.scores), abs=1e-3)
