from dataclasses import dataclass, replace

import pytest

from listenwell import Candidate, Dialogue, Factors, Listener, Persona, Reply, Turn, pipeline
from listenwell.checkpoint import writing
from listenwell.dialogue import CAREFUL, INSTRUCTION, Scored
from listenwell.errors import InputError, UnknownNameError, WeightsError
from listenwell.listener import MAX_CHARACTERS, Request
from listenwell.pipeline import CARE_INSTRUCTION, GeneratorOutput, Verdict
from listenwell.rankers.ranker import Ranker
from listenwell.reranking.reranker import Reranker
from listenwell.streams import CheckedText
from tests.rankers.tiny_rankers import ship_tiny

TIMED = ("understand", "guard", "plan", "generate", "rerank")
"""Every stage has its seconds, whether it is on or off."""


@dataclass
class Echo(pipeline.Generate):
    """Repeats its input, so that a test can see it."""

    name: str = "echo"

    def generate(self, dialogue, plans, seed, on_text=None):
        self.heard = dialogue
        texts = [f"{dialogue.turns[-1].text[-20:]}/{plan and plan.act}/{seed}" for plan in plans or (None,)]
        if on_text:
            for letter in texts[0]:
                on_text(letter)
        return GeneratorOutput(tuple(map(Candidate, texts, plans or (None,))), ("noted",))


class Understand(pipeline.Understand):
    def understand(self, dialogue):
        return (Scored("sad", 0.9),)


class Plan(pipeline.Plan):
    def plan(self, dialogue, emotion, target, seed):
        assert emotion[0].label == "sad"
        return (Factors(act=target.act or "questioning"), Factors(act="consoling"))


class ChooseLast(pipeline.Rerank):
    def rerank(self, dialogue, candidates, target=None):
        return tuple(replace(c, scores={"position": float(i)}) for i, c in enumerate(reversed(candidates)))


@dataclass
class Assessment:
    verdict: Verdict | None = None
    careful: bool = False


class Guard(pipeline.Guard):
    """Drops replies that ask; stops at the word help."""

    def assess(self, dialogue):
        is_crisis = "help" in dialogue.turns[-1].text
        return Assessment(Verdict("I am here.", {"reason": "crisis"}) if is_crisis else None)

    def select(self, dialogue, candidates, assessment):
        assert assessment.verdict is None
        for candidate in candidates:
            if "questioning" not in candidate.text:
                return Verdict(candidate.text, {"dropped": "1"}, candidate)
        return Verdict("I am listening.", {"dropped": "all"})


def test_stages_that_are_off_are_skipped():
    pieces = []
    reply = Listener(Echo()).reply("hello", seed=3, on_text=pieces.append)
    assert reply.text == "hello/None/3" == "".join(pieces)
    assert len(pieces) > 1
    assert (reply.emotion, reply.plan, reply.safety) == (None, None, None)
    assert reply.notices == ("noted",)
    assert sorted(dict(reply.timings)) == sorted((*TIMED, "total"))
    assert Reply.from_json(reply.to_json()) == reply


def test_every_stage_does_its_part():
    pieces = []
    listener = Listener(Echo(), Understand(), Plan(), ChooseLast(), Guard())
    reply = listener.reply("hello", seed=3, on_text=pieces.append)
    assert reply.text == "hello/consoling/3"
    assert pieces == [reply.text]  # nothing is shown before the guard has spoken
    assert reply.emotion == (Scored("sad", 0.9),)
    assert reply.plan == Factors(act="consoling")
    assert [candidate.text for candidate in reply.candidates] == ["hello/consoling/3", "hello/questioning/3"]
    assert dict(reply.candidates[1].scores) == {"position": 1.0}
    assert reply.safety == {"dropped": "1"}
    assert set(dict(reply.timings)) == {"understand", "plan", "generate", "rerank", "guard", "total"}


def test_a_guard_takes_the_next_candidate_or_writes_the_reply():
    guarded = Listener(Echo(), Understand(), Plan(), guard=Guard()).reply("hello", seed=3)
    assert guarded.text == "hello/consoling/3"  # the first one asked
    assert guarded.plan == Factors(act="consoling") and len(guarded.candidates) == 2
    want = Factors(act="questioning")

    class Asks(Plan):
        def plan(self, dialogue, emotion, target, seed):
            return (target,)

    none = Listener(Echo(), Understand(), Asks(), guard=Guard()).reply("hello", target=want, seed=3)
    assert (none.text, none.plan) == ("I am listening.", None)
    assert [one.text for one in none.candidates] == ["hello/questioning/3"]


def test_in_a_crisis_nothing_is_generated():
    generate, pieces = Echo(), []
    reply = Listener(generate, Understand(), Plan(), guard=Guard()).reply(
        "help", seed=3, on_text=pieces.append
    )
    assert reply.text == "I am here." and pieces == ["I am here."]
    assert not hasattr(generate, "heard") and reply.candidates == () and reply.plan is None
    assert reply.safety == {"reason": "crisis"} and reply.emotion


def test_where_the_guard_sees_a_concern_the_generator_is_told_to_be_careful():
    class Careful(Guard):
        def assess(self, dialogue):
            return Assessment(careful="gone" in dialogue.turns[-1].text)

    notes = []

    class Noted(Echo):
        def generate(self, dialogue, plans, seed, on_text=None):
            notes.append(dict(dialogue.notes))
            return super().generate(dialogue, plans, seed, on_text)

    listener = Listener(Noted(), Understand(), Plan(), guard=Careful())
    listener.reply(
        [{"role": "system", "content": "Be short."}, {"role": "user", "content": "all gone"}], seed=1
    )
    listener.reply("hello", seed=1)
    assert notes[0] == {CAREFUL: "true", INSTRUCTION: f"Be short.\n{CARE_INSTRUCTION}"}
    assert notes[1] == {}


def test_several_dialogues_are_answered_as_each_alone():
    listener = Listener(Echo(), Understand(), Plan(), ChooseLast(), Guard())
    talks = [Dialogue((Turn("speaker", text),)) for text in ("hello", "help", "well")]
    asked = [
        Request(talk, Factors(act="wishing") if place else None, place) for place, talk in enumerate(talks)
    ]
    found = listener.reply_batch(asked)
    for one, reply in zip(asked, found, strict=True):
        alone = listener.reply(one.dialogue, target=one.target, seed=one.seed)
        assert replace(reply, timings=()) == replace(alone, timings=())
    assert listener.reply_batch([]) == []
    with pytest.raises(InputError, match="listener's own"):
        listener.reply_batch([Request(Dialogue((Turn("listener", "hi"),)))])


def test_a_target_reaches_the_plan_and_needs_one():
    reply = Listener(Echo(), Understand(), Plan()).reply("hello", target=Factors(act="wishing"), seed=1)
    assert reply.plan == Factors(act="wishing")
    with pytest.raises(InputError, match="makes no plans"):
        Listener(Echo()).reply("hello", target=Factors(act="wishing"))


class Stubborn(Echo):
    """Misses its target at the first try, and meets it at the second."""

    def generate(self, dialogue, plans, seed, on_text=None):
        return GeneratorOutput((Candidate("La la.", plans[0]),))

    def retry_batch(self, requests):
        self.told = [super(Stubborn, self).generate(*one) for one in requests]
        return self.told if self.name == "echo" else [GeneratorOutput(()) for _ in requests]


class ChooseLastOrAskAgain(ChooseLast):
    def misses_target(self, ranked, target):
        return target is not None and ranked[0].text == "La la."


def test_a_missed_target_is_tried_once_more():
    listener = Listener(generator := Stubborn(), Understand(), Plan(), ChooseLastOrAskAgain())
    told = listener.reply("hello", target=Factors(act="wishing"), seed=1)
    assert told.text == "hello/consoling/1" and told.plan == Factors(act="consoling")
    assert [one.text for one in told.candidates] == ["hello/consoling/1", "hello/wishing/1", "La la."]
    talks = [Dialogue((Turn("speaker", text),)) for text in ("one", "two")]
    wants = (None, Factors(act="wishing"))
    free, steered = listener.reply_batch([Request(*one) for one in zip(talks, wants, strict=True)])
    assert free.text == "La la." and steered.text == "two/consoling/0" and len(generator.told) == 1
    generator.name = "no retry"
    assert listener.reply("hello", target=Factors(act="wishing"), seed=1).text == "La la."


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


def test_history_and_persona_reach_the_generator():
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
        Listener.from_pretrained("prompt")


def test_load_takes_the_users_weights_and_recipe(tiny_llama, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 4, temperature: 1.0}"
    )
    listener = Listener.from_pretrained("prompted", weights=tiny_llama, recipe=recipe)
    reply = listener.reply("I am sad", seed=1)
    assert reply == replace(listener.reply("I am sad", seed=1), timings=reply.timings)
    assert reply.model == f"prompted ({tiny_llama.name})"
    assert reply.text.strip()


DEAF = ("understand", "plan_adherence", "interpretation", "exploration")
"""Whatever needs the shipped annotators, which do not fit the tiny encoder."""
POOL = ("so sorry to hear that", "good luck !", "what happened to my dog ?", "great", "i am happy")


@pytest.fixture
def shipped(tiny_encoder, installed_encoder, tmp_path, monkeypatch):
    ship_tiny(tiny_encoder, tmp_path, monkeypatch)
    return Ranker.load()


@pytest.fixture
def settings(tiny_llama, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 4, temperature: 1.0}"
    )
    return {"name_or_folder": "prompted", "weights": tiny_llama, "recipe": recipe, "without": DEAF}


def test_several_replies_are_reranked(settings):
    listener = Listener.from_pretrained(candidates=5, **settings)
    assert isinstance(listener.rerank, Reranker)
    pieces = []
    reply = listener.reply("I am sad", seed=1, on_text=pieces.append)
    unranked = Listener.from_pretrained(candidates=5, **settings | {"without": (*DEAF, "choose")})
    proposed = unranked.reply("I am sad", seed=1).candidates
    assert reply.candidates == listener.rerank.rerank(Dialogue((Turn("speaker", "I am sad"),)), proposed)
    assert reply.text == reply.candidates[0].text and pieces == [reply.text]
    totals = [candidate.scores["total"] for candidate in reply.candidates]
    assert len(totals) == 5 and totals == sorted(totals, reverse=True)


def test_an_unknown_part_is_an_error_and_a_known_one_is_left_out(settings):
    with pytest.raises(UnknownNameError, match="brevty"):
        Listener.from_pretrained(candidates=2, **settings | {"without": ("brevty",)})
    with pytest.raises(UnknownNameError, match="soft_prompt"):  # the model prompted has none
        Listener.from_pretrained(candidates=2, **settings | {"without": ("voice",)})
    listener = Listener.from_pretrained(candidates=3, **settings | {"without": (*DEAF, "reader", "brief")})
    scores = listener.reply("I am sad", seed=1).candidates[0].scores
    assert "brevity" not in scores and "generic_response" in scores


def test_a_recipe_can_ask_for_several(settings):
    with settings["recipe"].open("a") as file:
        file.write("\ncandidates: 3\n")
    listener = Listener.from_pretrained(**settings)
    assert isinstance(listener.rerank, Reranker)
    assert len(listener.reply("I am sad", seed=1).candidates) == 3
    # What is given in the call counts more.
    assert len(Listener.from_pretrained(candidates=4, **settings).reply("I am sad", seed=1).candidates) == 4
    assert Listener.from_pretrained(candidates=1, **settings).rerank is None


def test_one_reply_is_not_reranked(settings):
    listener = Listener.from_pretrained(**settings)
    assert listener.rerank is None and len(listener.reply("I am sad", seed=1).candidates) == 1


def test_without_reranking_the_first_of_several_is_given(settings):
    pieces = []
    listener = Listener.from_pretrained(candidates=3, **settings | {"without": ("understand", "rerank")})
    assert listener.rerank is None
    reply = listener.reply("I am sad", seed=1, on_text=pieces.append)
    assert (
        reply.text == Listener.from_pretrained(**settings).reply("I am sad", seed=1).text == "".join(pieces)
    )
    assert len(reply.candidates) == 3


@pytest.mark.parametrize("as_path", [True, False])
def test_a_pool_answers_end_to_end(shipped, tmp_path, as_path):
    file = tmp_path / "pool.txt"
    file.write_text("\n".join(POOL))
    listener = Listener.from_pretrained(
        "retrieval", pool=file if as_path else str(file), without=("understand",)
    )
    assert listener.rerank is None  # the pool's replies are ranked already
    pieces = []
    reply = listener.reply("my dog died", seed=1, on_text=pieces.append)
    asked = Dialogue((Turn("speaker", "my dog died"),))
    expected = sorted(zip(-shipped.scores(asked, POOL), POOL, strict=True))
    assert [candidate.text for candidate in reply.candidates] == [text for _, text in expected]
    assert reply.text == expected[0][1] and pieces == [reply.text]
    assert dict(reply.candidates[0].scores)["ranker"] == pytest.approx(-expected[0][0], abs=1e-3)
    assert reply.model == f"retrieval (cobert, {file.name})"
    assert reply == replace(listener.reply("my dog died", seed=2), seed=1, timings=reply.timings)
    # A persona is heard, and what was said is not said again.
    known = listener.reply("my dog died", persona=["i am happy"], seed=1)
    assert known.candidates[0].scores != reply.candidates[0].scores
    history = Dialogue((Turn("speaker", "hi"), Turn("listener", reply.text)))
    assert listener.reply("my dog died", history=history).text != reply.text


def test_of_a_pool_candidates_are_what_is_proposed(shipped, tmp_path):
    file = tmp_path / "pool.txt"
    file.write_text("\n".join(POOL))
    listener = Listener.from_pretrained("retrieval", pool=file, candidates=2, without=("understand",))
    assert (listener.generate.config.candidates, listener.generate.config.searched) == (2, 100)
    assert len(listener.reply("my dog died").candidates) == 2
    with pytest.raises(InputError, match="candidates is 0"):
        Listener.from_pretrained("retrieval", pool=file, candidates=0, without=("understand",))


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("prompted", {"pool": "esconv"}, r"The model prompted has no pool\. Leave pool out, or name another"),
        ("vanilla", {"pool": "esconv"}, "The model vanilla has no pool"),
        ("prompted", {"candidates": 65}, "candidates is 65. Give 1 to 64"),
        ("prompted", {"candidates": 0}, "candidates is 0"),
        ("retrieval", {"pool": "nowhere.txt"}, "no file and no corpus"),
    ],
)
def test_a_setting_that_a_model_lacks_is_named_before_anything_is_loaded(model, given, message):
    with pytest.raises(InputError, match=message):
        Listener.from_pretrained(model, weights="no such folder", **given)


def test_contexts_are_texts_messages_dialogues_and_lists_of_them():
    listener = Listener(Echo())
    messages = [
        {"role": "system", "content": "I have two dogs.\nMy name is Kim."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    single = listener.reply(messages, seed=1)
    assert single.text == "three/None/1"
    assert listener.generate.heard.persona_of("listener").lines == ("I have two dogs.", "My name is Kim.")
    replies = listener.reply(["hello", messages, Dialogue((Turn("speaker", "hi"),))], seed=1)
    assert [reply.text for reply in replies] == ["hello/None/1", "three/None/1", "hi/None/1"]
    assert replace(replies[1], timings=()) == replace(single, timings=())
    assert listener.reply([]) == []
    assert listener.reply(["hello"], seed=2)[0].seed == 2
    with pytest.raises(InputError, match="batch"):
        listener.reply(["hello"], on_text=print)


def test_checked_text_stops_before_what_may_not_be_shown():
    shown = []
    checked = CheckedText(shown.append, lambda text: "bad" not in text)
    for chunk in ("Oh", " no! W", "hat now? This is b", "ad. And", " more. End"):
        checked(chunk)
    assert shown == ["Oh no! ", "What now? "]
    assert checked.finish("I am listening.") == "Oh no! What now?"
    assert shown == ["Oh no! ", "What now? "]


def test_checked_text_ends_with_the_whole_reply():
    shown = []
    checked = CheckedText(shown.append, lambda text: True)
    for chunk in ("Dr", ". No", "? Y", "es"):
        checked(chunk)
    assert checked.finish("Dr. No? Yes") == "Dr. No? Yes" == "".join(shown)
    unseen = []
    assert CheckedText(unseen.append, lambda text: False).finish("Hm.") == "Hm." == "".join(unseen)


def test_a_stream_gives_chunks_and_the_reply():
    stream = Listener(Echo()).stream("hello", seed=3)
    chunks = list(stream)
    assert len(chunks) > 1 and "".join(chunks) == "hello/None/3" == stream.reply.text
    assert list(stream) == []

    class Long(Echo):
        def generate(self, dialogue, plans, seed, on_text=None):
            return GeneratorOutput((Candidate("Oh no! Really?  I am here."),))

    listener = Listener(Long(), guard=Guard())
    assert list(listener.stream("hello")) == ["Oh no! ", "Really?  ", "I am here."]
    assert listener.stream("hello", seed=4).reply.seed == 4
    with pytest.raises(InputError, match="empty"):
        next(Listener(Echo()).stream(" "))


def test_names_of_earlier_releases_warn():
    import listenwell
    from listenwell import listener as module

    with pytest.warns(DeprecationWarning, match="from_pretrained"), pytest.raises(UnknownNameError):
        Listener.load("prompt")
    with pytest.warns(DeprecationWarning, match="target="):
        Listener(Echo(), Understand(), Plan()).reply("hello", want=Factors(act="wishing"))
    with pytest.warns(DeprecationWarning, match="Request"):
        request = module.Asked(Dialogue((Turn("speaker", "hi"),)))
    with pytest.warns(DeprecationWarning, match="reply_batch"):
        assert len(Listener(Echo()).reply_many([request])) == 1
    with pytest.warns(DeprecationWarning, match="Prediction"):
        assert listenwell.Reading is listenwell.Prediction
    for name in listenwell.__all__:
        assert getattr(listenwell, name)


def test_a_folder_is_loaded_by_what_it_holds(tiny_llama, tmp_path):
    listener = Listener.from_pretrained(tiny_llama, without=("understand", "guard"))
    assert listener.generate.name == f"prompted ({tiny_llama.name})"
    with pytest.raises(InputError, match="both"):
        Listener.from_pretrained(tiny_llama, weights=tiny_llama)
    with writing(tmp_path / "other", "crisis"):
        pass
    with pytest.raises(InputError, match="no generator"):
        Listener.from_pretrained(tmp_path / "other")
    with writing(tmp_path / "planned", "planned"):
        pass
    with pytest.raises(WeightsError):  # the right class, which finds it empty
        Listener.from_pretrained(tmp_path / "planned")
