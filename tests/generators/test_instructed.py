from dataclasses import replace

import pytest

from listenwell.dialogue import INSTRUCTION, Dialogue, Factors, Persona, Scored, Turn
from listenwell.errors import InputError, WeightsError
from listenwell.generators.decoding import Decoding
from listenwell.generators.instructed import GUIDE, Instructed, InstructedConfig
from listenwell.generators.instructions import instruction
from listenwell.listener import Listener
from tests.bases import save_base, write_gguf

TALK = Dialogue(
    (Turn("speaker", "I lost my job."),),
    personas=(Persona("listener", ("I am a nurse.",)),),
    notes=((INSTRUCTION, "Be calm."),),
)
PLANS = (Factors(emotion="sad", act="consoling"), Factors(emotion="sad", act="questioning"))
CONFIG = InstructedConfig(
    guide="Listen.", prompt_tokens=600, decoding=Decoding(max_tokens=8, temperature=1.0)
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_base(tmp_path_factory.mktemp("Tiny-2.5B-Instruct") / "Tiny-2.5B-Instruct", "qwen2", unused=5)


@pytest.fixture
def instructed(base):
    return Instructed.load(CONFIG, base)


def test_guide_instruction_plan_and_persona_are_the_system_prompt(instructed):
    prompt = instructed._prompt(TALK, PLANS[1])
    text = instructed.runtime.vocabulary.decode(prompt.tokens)
    assert text == (
        "system\nListen.\nBe calm.\nThey feel sad. Above all, ask them one question about it.\n"
        "About you: I am a nurse.\nuser\nI lost my job.\nassistant\n"
    )
    alone = instructed.runtime.vocabulary.decode(instructed._prompt(TALK, None).tokens)
    assert instruction(PLANS[1]) not in alone and "Be calm." in alone


def test_the_guide_is_short_and_every_plan_is_one_line():
    guide = InstructedConfig().guide
    assert guide == GUIDE.read_text().strip()
    assert 8 <= len(guide.splitlines()) <= 12
    for words in ("program", "feeling", "one question", "no advice", "no life of your own", "short"):
        assert words in guide
    whole = Factors(emotion="sad", mechanisms=("exploration",), act="consoling", expressed_emotion="caring")
    assert "\n" not in instruction(whole)


def test_each_plan_gets_its_share_of_different_replies(instructed):
    output = instructed.generate(TALK, PLANS, 3)
    assert [candidate.plan for candidate in output.candidates] == [PLANS[0]] * 2 + [PLANS[1]] * 2
    assert len({candidate.text for candidate in output.candidates}) == 4
    assert all(
        candidate.text.strip() and candidate.scores["likelihood"] < 0 for candidate in output.candidates
    )
    assert instructed.generate(TALK, PLANS, 3) == output != instructed.generate(TALK, PLANS, 4)
    pieces = []
    alone = instructed.generate(TALK, (), 3, pieces.append)
    assert len(alone.candidates) == 4 and "".join(pieces) == alone.candidates[0].text
    assert alone.candidates[0].plan is None


def test_plans_follow_the_emotion_and_the_target(instructed):
    plans = instructed.plan(TALK, (Scored("sad", 0.9),), Factors(), 1)
    assert [plan.act for plan in plans] == ["sympathizing", "questioning"]
    assert {plan.emotion for plan in plans} == {"sad"}
    target = Factors(act="wishing", expressed_emotion="caring")
    assert instructed.plan(TALK, (Scored("sad", 0.9),), target, 1) == (replace(target, emotion="sad"),)


def test_the_whole_listener_stands_around_it(base, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text("guide: Listen.\nprompt_tokens: 900\ndecoding: {max_tokens: 6, temperature: 1.0}")
    listener = Listener.from_pretrained("instructed", weights=base, recipe=recipe)
    reply = listener.reply(
        "I lost my job today.", target=Factors(act="questioning"), seed=4, persona=["I sing."]
    )
    assert reply.model == "instructed (Tiny-2.5B-Instruct)"
    assert reply.plan.act == "questioning" and reply.emotion[0].probability > 0
    assert {"likelihood", "plan_adherence", "repetition", "total"} <= set(reply.candidates[0].scores)
    crisis = listener.reply("I want to kill myself.", seed=4)
    assert crisis.candidates == () and crisis.safety["level"] != "none"


@pytest.mark.parametrize("family", ["llama", "gemma3_text"])
def test_other_families_and_gguf_files_reply_too(family, tmp_path):
    write_gguf(tmp_path / "tiny.Q8.gguf", family)
    instructed = Instructed.load(CONFIG, tmp_path / "tiny.Q8.gguf")
    assert instructed.name == "instructed (tiny.Q8)" and len(list(instructed.files())) == 1
    output = instructed.generate(TALK, PLANS, 3)
    assert len(output.candidates) == 4


def test_what_is_missing_is_named(tiny_encoder):
    with pytest.raises(WeightsError, match=r"no weights of its own\. Name an instruct model.*--base"):
        Instructed.load(CONFIG)
    for setting in ({"plans": 0}, {"candidates": 17}, {"prompt_tokens": 8}):
        with pytest.raises(InputError, match="Give"):
            InstructedConfig(**setting)
