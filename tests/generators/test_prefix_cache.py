"""A voice changes what is said, and nothing else; both engines hear the same."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from listenwell.checkpoint import open_checkpoint, writing
from listenwell.dialogue import Dialogue, Example, Factors, Turn
from listenwell.generators import reward_model as liking
from listenwell.generators.decoding import Decoding
from listenwell.generators.generation import word_replies
from listenwell.generators.planned import KIND, PlannedConfig, Speaker
from listenwell.generators.plans import PlanTokens
from listenwell.generators.prompt_template import Layout
from listenwell.generators.reward_model import Liking, weights_of
from listenwell.listener import Listener
from listenwell.runtime.engines import Engine
from listenwell.runtime.names import VOICE

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
def voiced(tiny_speaker, tmp_path_factory):
    """The tiny speaker with a voice."""
    folder = tmp_path_factory.mktemp("voiced") / "best"
    saved = open_checkpoint(tiny_speaker)
    with writing(folder, KIND) as aside:
        for name in saved.sums:
            shutil.copyfile(saved.path(name), aside / name)
        width = Speaker.load(CONFIG, tiny_speaker).middles_of(TALKS[0], PLAN, ["Oh."]).shape[1]
        rows = np.random.default_rng(3).normal(size=(TOKENS, width)).astype(np.float16)
        save_file({"rows": rows}, aside / VOICE)
    return folder


def said(speaker, talks=TALKS, plans=(PLAN, OTHER)):
    return [
        [(one.text, one.plan, dict(one.scores)["likelihood"]) for one in speech.candidates]
        for speech in speaker.speak_many([(talk, plans, 4) for talk in talks])
    ]


@pytest.mark.parametrize("plans", [(PLAN, OTHER), ()])
def test_engines_speak_alike_together_and_alone(voiced, tiny_speaker, plans):
    onnx = Speaker.load(CONFIG, voiced)
    torch = Speaker.load(replace(CONFIG, engine=Engine("torch")), voiced)
    assert onnx.runtime.voice == torch.runtime.voice and len(onnx.runtime.voice) == TOKENS
    found = said(onnx, plans=plans)
    for mine, its in zip(found, said(torch, plans=plans), strict=True):
        assert [one[:2] for one in mine] == [one[:2] for one in its]
        assert [one[2] for one in mine] == pytest.approx([one[2] for one in its], abs=1e-3)
    for talk, known in zip(TALKS, found, strict=True):
        assert [one[:2] for one in said(onnx, [talk], plans)[0]] == [one[:2] for one in known]
    assert found != said(Speaker.load(CONFIG, tiny_speaker), plans=plans)


@pytest.mark.parametrize("engine", [Engine("onnx", "fp32"), Engine("torch")])
def test_it_stands_between_dialogue_and_plan(voiced, engine, monkeypatch):
    speaker = Speaker.load(replace(CONFIG, engine=engine), voiced)
    runtime, begins = speaker.runtime, []
    layout = Layout(runtime.vocabulary, PlanTokens.of(runtime.vocabulary))

    def heard(engine, begun, *others):
        begins.append(engine.logits(begun.state).copy())
        return word_replies(engine, begun, *others)

    monkeypatch.setattr("listenwell.generators.planned.word_replies", heard)
    said(speaker)
    words = len(runtime.vocabulary)
    rows = [(talk, plan) for talk in TALKS for plan in (PLAN, PLAN, OTHER, OTHER)]
    for found, (talk, plan) in zip(begins[0], rows, strict=True):
        before = [*layout.prompt(talk, 512).tokens, *range(words, words + TOKENS), *layout.plans.encode(plan)]
        np.testing.assert_allclose(found, runtime.logits(runtime.prefill(before))[0], atol=1e-3)
        middles = runtime.mean_middles(before, [layout.words("Oh no.")[:-1]])
        np.testing.assert_allclose(middles, speaker.middles_of(talk, plan, ["Oh no."]), atol=1e-4)


def test_what_was_read_stays_whole(voiced):
    speaker = Speaker.load(CONFIG, voiced)
    plans = speaker.plan(TALKS[0], None, Factors(), 1)
    first = said(speaker, TALKS[:1], plans)
    assert first == said(speaker, TALKS[:1], plans)
    assert plans == speaker.plan(TALKS[0], None, Factors(), 1)


def test_plans_and_perplexities_are_the_speakers_own(voiced, tiny_speaker):
    one, other = Speaker.load(CONFIG, voiced), Speaker.load(CONFIG, tiny_speaker)
    assert one.plan(TALKS[0], None, Factors(), 1) == other.plan(TALKS[0], None, Factors(), 1)
    read = Factors(mechanisms=("exploration",), act="questioning", tone="caring")
    examples = [
        Example(replace(talk, emotion="sad"), Turn("listener", "What happened?", factors=read))
        for talk in TALKS
    ]
    for factors in ("gold", "none", "marginal"):
        assert one.perplexity(examples, factors) == other.perplexity(examples, factors)
    assert one.priors(["Oh no."]) == other.priors(["Oh no."])


def test_it_can_be_left_out(voiced, tiny_speaker):
    silent = Speaker.load(replace(CONFIG, voiced=False), voiced)
    assert said(silent) == said(Speaker.load(CONFIG, tiny_speaker))
    alone = ("understand", "choose", "guard")
    assert Listener.load(weights=voiced, without=alone).speak.voiced
    assert not Listener.load(weights=voiced, without=(*alone, "voice")).speak.voiced


def test_it_can_be_left_out_of_one_reply(voiced, tiny_speaker):
    speaker, asked = Speaker.load(CONFIG, voiced), [(TALKS[0], (PLAN, OTHER), 4)]
    first = said(speaker, TALKS[:1])
    plain = speaker.speak_plainly(asked)
    assert plain == Speaker.load(CONFIG, tiny_speaker).speak_many(asked)
    assert said(speaker, TALKS[:1]) == first != said(Speaker.load(CONFIG, tiny_speaker), TALKS[:1])
    assert Speaker.load(CONFIG, tiny_speaker).speak_plainly(asked)[0].candidates == ()


def test_in_8_bits_it_is_heard_too(voiced, tiny_speaker):
    rounded = replace(CONFIG, engine=Engine("onnx", "int8"))
    assert said(Speaker.load(rounded, voiced)) != said(Speaker.load(rounded, tiny_speaker))


def test_a_liking_is_of_one_voice(voiced, tiny_speaker, tmp_path, monkeypatch):
    """States with a voice are others: a line that was learned on them says nothing of those without."""
    one, other = open_checkpoint(voiced), open_checkpoint(tiny_speaker)
    assert weights_of(one) != weights_of(other) == weights_of(one, voiced=False)
    for name in ("SHIPPED", "UNVOICED"):
        monkeypatch.setattr(liking, name, tmp_path / name)
    width = Speaker.load(CONFIG, tiny_speaker).middles_of(TALKS[0], PLAN, ["Oh."]).shape[1]
    silent = replace(CONFIG, voiced=False)
    Liking(np.ones(width, np.float32), weights_of(one)).save(tmp_path / "SHIPPED", {})

    def is_liked(folder, config):
        (candidate, *_) = Speaker.load(config, folder).speak(TALKS[0], (PLAN,), 1).candidates
        return "liked" in dict(candidate.scores)

    assert is_liked(voiced, CONFIG)
    assert not is_liked(voiced, silent) and not is_liked(tiny_speaker, CONFIG)
    Liking(np.ones(width, np.float32), weights_of(other)).save(tmp_path / "UNVOICED", {})
    assert is_liked(voiced, CONFIG) and is_liked(voiced, silent) and is_liked(tiny_speaker, CONFIG)
