"""A voice changes what is said, and nothing else; both engines hear the same."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from listenwell.checkpoint import open_checkpoint, writing
from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.generators import reward_model
from listenwell.generators.decoding import Decoding
from listenwell.generators.generation import generate_rows
from listenwell.generators.planned import KIND, PlannedConfig, PlannedGenerator
from listenwell.generators.plans import PlanTokens
from listenwell.generators.prompt_template import PromptTemplate
from listenwell.generators.reward_model import RewardModel, weights_of
from listenwell.listener import Listener
from listenwell.runtime.engines import Engine
from listenwell.runtime.names import SOFT_PROMPT

PLAN = Factors("sad", ("exploration",), "questioning", "caring")
OTHER = Factors("sad", (), "wishing", "joy")
TALKS = [
    Dialogue((Turn("speaker", "My dog died. I am so sad."),)),
    Dialogue((Turn("speaker", "I am so happy for you! Oh no. What happened to the car?"),)),
]
GREEDY = Decoding(temperature=0, max_tokens=8, no_repeat=3)
CONFIG = PlannedConfig(plans=2, candidates=4, decoding=GREEDY, engine=Engine("onnx", "fp32"))
TOKENS = 5


@pytest.fixture(scope="module")
def use_soft_prompt(tiny_generator, tmp_path_factory):
    """The tiny generator with a voice."""
    folder = tmp_path_factory.mktemp("use_soft_prompt") / "best"
    saved = open_checkpoint(tiny_generator)
    with writing(folder, KIND) as aside:
        for name in saved.sums:
            shutil.copyfile(saved.path(name), aside / name)
        width = (
            PlannedGenerator.load(CONFIG, tiny_generator).hidden_states_of(TALKS[0], PLAN, ["Oh."]).shape[1]
        )
        rows = np.random.default_rng(3).normal(size=(TOKENS, width)).astype(np.float16)
        save_file({"rows": rows}, aside / SOFT_PROMPT)
    return folder


def said(generator, talks=TALKS, plans=(PLAN, OTHER)):
    return [
        [(one.text, one.plan, dict(one.scores)["likelihood"]) for one in speech.candidates]
        for speech in generator.generate_batch([(talk, plans, 4) for talk in talks])
    ]


@pytest.mark.parametrize("plans", [(PLAN, OTHER), ()])
def test_engines_speak_alike_together_and_alone(use_soft_prompt, tiny_generator, plans):
    onnx = PlannedGenerator.load(CONFIG, use_soft_prompt)
    torch = PlannedGenerator.load(replace(CONFIG, engine=Engine("torch")), use_soft_prompt)
    assert onnx.runtime.soft_prompt == torch.runtime.soft_prompt and len(onnx.runtime.soft_prompt) == TOKENS
    found = said(onnx, plans=plans)
    for mine, its in zip(found, said(torch, plans=plans), strict=True):
        assert [one[:2] for one in mine] == [one[:2] for one in its]
        assert [one[2] for one in mine] == pytest.approx([one[2] for one in its], abs=1e-3)
    for talk, known in zip(TALKS, found, strict=True):
        assert [one[:2] for one in said(onnx, [talk], plans)[0]] == [one[:2] for one in known]
    assert found != said(PlannedGenerator.load(CONFIG, tiny_generator), plans=plans)


@pytest.mark.parametrize("engine", [Engine("onnx", "fp32"), Engine("torch")])
def test_it_stands_between_dialogue_and_plan(use_soft_prompt, engine, monkeypatch):
    generator = PlannedGenerator.load(replace(CONFIG, engine=engine), use_soft_prompt)
    runtime, begins = generator.runtime, []
    layout = PromptTemplate(runtime.vocabulary, PlanTokens.of(runtime.vocabulary), CONFIG.manner)

    def heard(engine, prefix, *others):
        begins.append(engine.logits(prefix.state).copy())
        return generate_rows(engine, prefix, *others)

    monkeypatch.setattr("listenwell.generators.planned.generate_rows", heard)
    said(generator)
    words = len(runtime.vocabulary)
    rows = [(talk, plan) for talk in TALKS for plan in (PLAN, PLAN, OTHER, OTHER)]
    for found, (talk, plan) in zip(begins[0], rows, strict=True):
        before = [*layout.prompt(talk, 512).tokens, *range(words, words + TOKENS), *layout.plans.encode(plan)]
        np.testing.assert_allclose(found, runtime.logits(runtime.prefill(before))[0], atol=1e-3)
        hidden_states = runtime.mean_hidden_states(before, [layout.words("Oh no.")[:-1]])
        np.testing.assert_allclose(
            hidden_states, generator.hidden_states_of(talk, plan, ["Oh no."]), atol=1e-4
        )


def test_what_was_read_stays_whole(use_soft_prompt):
    generator = PlannedGenerator.load(CONFIG, use_soft_prompt)
    plans = generator.plan(TALKS[0], None, Factors(), 1)
    first = said(generator, TALKS[:1], plans)
    assert first == said(generator, TALKS[:1], plans)
    assert plans == generator.plan(TALKS[0], None, Factors(), 1)


def test_plans_and_perplexities_are_the_speakers_own(use_soft_prompt, tiny_generator):
    one, other = PlannedGenerator.load(CONFIG, use_soft_prompt), PlannedGenerator.load(CONFIG, tiny_generator)
    assert one.plan(TALKS[0], None, Factors(), 1) == other.plan(TALKS[0], None, Factors(), 1)
    read = Factors(mechanisms=("exploration",), act="questioning", expressed_emotion="caring")
    examples = [
        Example(replace(talk, emotion="sad"), Turn("listener", "What happened?", factors=read))
        for talk in TALKS
    ]
    for factors in ("gold", "none", "marginal"):
        assert one.perplexity(examples, factors) == other.perplexity(examples, factors)


def test_it_can_be_left_out(use_soft_prompt, tiny_generator):
    silent = PlannedGenerator.load(replace(CONFIG, use_soft_prompt=False), use_soft_prompt)
    assert said(silent) == said(PlannedGenerator.load(CONFIG, tiny_generator))
    alone = ("understand", "rerank", "guard")
    assert Listener.from_pretrained(weights=use_soft_prompt, without=alone).generate.use_soft_prompt
    assert not Listener.from_pretrained(
        weights=use_soft_prompt, without=(*alone, "soft_prompt")
    ).generate.use_soft_prompt


def test_it_can_be_left_out_of_one_reply(use_soft_prompt, tiny_generator):
    generator, asked = PlannedGenerator.load(CONFIG, use_soft_prompt), [(TALKS[0], (PLAN, OTHER), 4)]
    first = said(generator, TALKS[:1])
    plain = generator.retry_batch(asked)
    assert plain == PlannedGenerator.load(CONFIG, tiny_generator).generate_batch(asked)
    assert (
        said(generator, TALKS[:1]) == first != said(PlannedGenerator.load(CONFIG, tiny_generator), TALKS[:1])
    )
    assert PlannedGenerator.load(CONFIG, tiny_generator).retry_batch(asked)[0].candidates == ()


def test_in_8_bits_it_is_heard_too(use_soft_prompt, tiny_generator):
    rounded = replace(CONFIG, engine=Engine("onnx", "int8"))
    assert said(PlannedGenerator.load(rounded, use_soft_prompt)) != said(
        PlannedGenerator.load(rounded, tiny_generator)
    )


def test_a_liking_is_of_one_voice(use_soft_prompt, tiny_generator, tmp_path, monkeypatch):
    """States with a voice are others: a line that was learned on them says nothing of those without."""
    one, other = open_checkpoint(use_soft_prompt), open_checkpoint(tiny_generator)
    assert weights_of(one) != weights_of(other) == weights_of(one, use_soft_prompt=False)
    monkeypatch.setattr(reward_model, "SHIPPED", tmp_path / "SHIPPED")
    width = PlannedGenerator.load(CONFIG, tiny_generator).hidden_states_of(TALKS[0], PLAN, ["Oh."]).shape[1]
    silent = replace(CONFIG, use_soft_prompt=False)
    RewardModel(np.ones(width, np.float32), weights_of(one)).save(tmp_path / "SHIPPED", {})

    def is_liked(folder, config):
        (candidate, *_) = PlannedGenerator.load(config, folder).generate(TALKS[0], (PLAN,), 1).candidates
        return "reward" in dict(candidate.scores)

    assert is_liked(use_soft_prompt, CONFIG)
    assert not is_liked(use_soft_prompt, silent) and not is_liked(tiny_generator, CONFIG)
    RewardModel(np.ones(width, np.float32), weights_of(other)).save(tmp_path / "SHIPPED", {})
    assert not is_liked(use_soft_prompt, CONFIG)
    assert is_liked(use_soft_prompt, silent) and is_liked(tiny_generator, CONFIG)
