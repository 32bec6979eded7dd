from dataclasses import dataclass, replace

import pytest

from listenwell import Candidate, Dialogue, Factors, Listener, Persona, Reply, Turn
from listenwell.dialogue import Scored
from listenwell.errors import InputError, UnknownNameError
from listenwell.generators.base import Speech
from listenwell.listener import MAX_CHARACTERS, Verdict


@dataclass
class Echo:
    """Says back what it was given, so that a test can see it."""

    name: str = "echo"

    def speak(self, dialogue, plan, seed, on_text=None):
        self.heard = dialogue
        text = f"{dialogue.turns[-1].text[-20:]}/{plan.act if plan else None}/{seed}"
        if on_text:
            for letter in text:
                on_text(letter)
        return Speech((Candidate(text, plan),), ("noted",))


class Understand:
    def understand(self, dialogue):
        return (Scored("sad", 0.9),)


class Plan:
    def plan(self, dialogue, emotion, seed):
        assert emotion[0].label == "sad"
        return (Factors(act="questioning"), Factors(act="consoling"))


class ChooseLast:
    def choose(self, dialogue, candidates):
        return tuple(replace(c, scores={"place": float(i)}) for i, c in enumerate(reversed(candidates)))


class Guard:
    def guard(self, dialogue, reply):
        return Verdict("I am here.", (("reason", "crisis"),))


def test_the_empty_places_are_passed_over():
    pieces = []
    reply = Listener(Echo()).reply("hello", seed=3, on_text=pieces.append)
    assert reply.text == "hello/None/3" == "".join(pieces)
    assert len(pieces) > 1
    assert (reply.emotion, reply.plan, reply.safety) == (None, None, None)
    assert reply.notices == ("noted",)
    assert Reply.from_json(reply.to_json()) == reply


def test_every_place_does_its_part():
    pieces = []
    listener = Listener(Echo(), Understand(), Plan(), ChooseLast(), Guard())
    reply = listener.reply("hello", seed=3, on_text=pieces.append)
    assert reply.text == "I am here."
    assert pieces == ["I am here."]  # nothing is shown before the guard has spoken
    assert reply.emotion == (Scored("sad", 0.9),)
    assert reply.plan == Factors(act="consoling")
    assert [candidate.text for candidate in reply.candidates] == ["hello/consoling/4", "hello/questioning/3"]
    assert dict(reply.candidates[1].scores) == {"place": 1.0}
    assert reply.safety == (("reason", "crisis"),)
    assert set(dict(reply.timings)) == {"understand", "plan", "speak", "choose", "guard", "total"}


@pytest.mark.parametrize("text", ["", "  ", "\n\t", "\u2003"])
def test_nothing_said_is_an_error(text):
    with pytest.raises(InputError, match="empty"):
        Listener(Echo()).reply(text)


def test_a_very_long_text_is_cut_with_a_notice():
    echo = Echo()
    reply = Listener(echo).reply("a" * 100_000 + "the end", seed=0)
    assert len(echo.heard.turns[-1].text) == MAX_CHARACTERS
    assert echo.heard.turns[-1].text.endswith("the end")
    assert f"first {100_007 - MAX_CHARACTERS} characters" in reply.notices[0]
    with pytest.raises(InputError, match="blank"):
        Listener(echo).reply("a" + " " * 100_000)


def test_history_and_persona_reach_the_speaker():
    echo = Echo()
    history = Dialogue(
        (Turn("speaker", "one"), Turn("listener", "two")), personas=(Persona("speaker", ["I bake."]),)
    )
    Listener(echo).reply("three", history=history, persona=["I run."])
    assert [turn.text for turn in echo.heard.turns] == ["one", "two", "three"]
    assert echo.heard.persona_of("listener").lines == ("I run.",)
    assert echo.heard.persona_of("speaker").lines == ("I bake.",)


def test_a_dialogue_must_end_with_the_other_person():
    listener = Listener(Echo())
    assert listener.reply(Dialogue((Turn("anna", "hi"),)), seed=1).text == "hi/None/1"
    with pytest.raises(InputError, match="listener's own"):
        listener.reply(Dialogue((Turn("speaker", "hi"), Turn("listener", "hello"))))
    with pytest.raises(InputError, match="Both"):
        listener.reply(Dialogue((Turn("a", "b"),)), history=Dialogue((Turn("a", "b"),)))


def test_without_a_seed_each_reply_draws_its_own_and_reports_it():
    listener = Listener(Echo())
    seeds = {listener.reply("hello").seed for _ in range(5)}
    assert len(seeds) == 5
    with pytest.raises(InputError, match="seed is -1"):
        listener.reply("hello", seed=-1)


def test_an_unknown_model_gets_the_near_names():
    with pytest.raises(UnknownNameError, match="Did you mean 'prompted'"):
        Listener.load("prompt")


def test_load_takes_the_users_weights_and_recipe(tiny_llama, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 4, temperature: 1.0}"
    )
    listener = Listener.load(weights=tiny_llama, recipe=recipe)
    reply = listener.reply("I am sad", seed=1)
    assert reply == replace(listener.reply("I am sad", seed=1), timings=reply.timings)
    assert reply.model == f"prompted ({tiny_llama.name})"
    assert reply.text.strip()
