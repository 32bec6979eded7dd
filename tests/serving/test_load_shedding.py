"""While several people wait, each reply is chosen from fewer."""

import math
import threading
from dataclasses import dataclass, field

import httpx2
import pytest

from listenwell.dialogue import Candidate, Factors, Scored
from listenwell.errors import InputError
from listenwell.generators.base import Capabilities, Generator
from listenwell.generators.planner import Draw, Planner
from listenwell.generators.plans import PlanTokens
from listenwell.labels import ACTS, EXPRESSED_EMOTIONS
from listenwell.listener import Listener
from listenwell.pipeline import GeneratorOutput, Plan, Rerank, Understand
from listenwell.retrieval.generator import RetrievalConfig
from listenwell.runtime.torch_engine import TorchRuntime
from listenwell.serving.load_shedding import BEAM, candidate_count, shed_count, with_fewer_candidates
from listenwell.serving.settings import Settings
from tests.serving.fake import FakeListener, fake_app, fake_settings, running, wait_until


@dataclass(frozen=True)
class Config:
    plans: int = 4
    candidates: int = 8
    plan_beam: int = 72


@dataclass
class PlannedGenerator(Generator, Plan):
    """Plans and speaks as much as its config says."""

    config: object = field(default_factory=Config)
    name: str = "generator"

    def plan(self, dialogue, emotion, target, seed):
        return tuple(Factors(act=act) for act in ACTS[: self.config.plans])

    def generate(self, dialogue, plans, seed, on_text=None):
        texts = [str(number) for number in range(self.config.candidates)]
        return GeneratorOutput(tuple(Candidate(text, plans[int(text) % len(plans)]) for text in texts))


class RankedGenerator(PlannedGenerator):
    capabilities = Capabilities(ranked=True)


class ChooseLast(Rerank):
    def rerank(self, dialogue, candidates, target=None):
        return tuple(reversed(candidates))


def careful(hold=None):
    """A listener that waits, and chooses the last of its replies: their number less one."""

    class Annotator(Understand):
        def understand(self, dialogue):
            assert hold is None or hold.wait(20)
            return (Scored("proud", 0.5),)

    generator = PlannedGenerator()
    return Listener(generator, Annotator(), generator, ChooseLast())


@pytest.mark.parametrize(
    ("own", "load", "min_candidates", "left"),
    [
        *((8, load, 2, left) for load, left in enumerate((8, 8, 4, 3, 2, 2), 0)),
        *((8, load, 1, left) for load, left in ((4, 2), (7, 2), (8, 1), (64, 1))),
        (8, 8, 2, 2),
        (1, 5, 2, 1),
        (8, 3, 20, 8),
    ],
)
def test_the_work_for_one_is_shared_out(own, load, min_candidates, left):
    assert shed_count(own, load, min_candidates) == left


def test_a_listener_that_cannot_spare_is_left_as_it_is():
    plain = FakeListener()
    assert with_fewer_candidates(plain, 1) is plain
    assert (candidate_count(plain), candidate_count(careful())) == (1, 8)
    retrieval = Listener(RankedGenerator(RetrievalConfig()))  # in a pool: nothing is made
    assert with_fewer_candidates(retrieval, 1) is retrieval
    with pytest.raises(InputError, match="min_candidates"):
        Settings(min_candidates=0)


@pytest.mark.parametrize(("settings", "chosen_from"), [({}, [3] * 3), ({"min_candidates": None}, [8] * 3)])
def test_those_who_wait_together_share(settings, chosen_from):
    hold = threading.Event()
    app = fake_app(fake_settings(**settings), careful(hold))
    found = {}

    def ask(url, number, **body):
        answer = httpx2.post(f"{url}/api/reply", json={"text": "hello"} | body, timeout=20)
        found[number] = len(answer.json()["candidates"])

    with running(app) as url:
        line, threads = app.state.service.queue, []
        for number in range(4):
            threads.append(threading.Thread(target=ask, args=(url, number)))
            threads[-1].start()
            wait_until(lambda n=number: (line.running, line.waiting) == (1, n))
        hold.set()
        for thread in threads:
            thread.join()
        for candidates in (5, 1, 64):
            ask(url, f"asked for {candidates}", candidates=candidates)
    alone, *others = (found[number] for number in range(4))
    assert (alone, others) == (8, chosen_from)
    assert [found[f"asked for {number}"] for number in (5, 1, 64)] == [5, 1, 8]


def test_a_number_of_ones_own_is_not_lowered(tmp_path):
    hold = threading.Event()
    app = fake_app(fake_settings(store=str(tmp_path / "talks")), careful(hold))
    with running(app) as url, httpx2.Client(base_url=url, timeout=20) as client:
        id = client.post("/api/conversations", json={}).json()["id"]
        asked = (
            ("/api/reply", {"text": "a"}),
            ("/api/reply", {"text": "a", "candidates": 6}),
            (f"/api/conversations/{id}/messages", {"text": "a", "candidates": 6}),
            (
                "/v1/chat/completions",
                {"model": "fake", "messages": [{"role": "user", "content": "a"}], "candidates": 6},
            ),
            ("/api/reply", {"text": "a"}),
        )
        found: dict[int, dict] = {}
        threads = [
            threading.Thread(
                target=lambda n=n, one=one: found.update({n: client.post(one[0], json=one[1]).json()})
            )
            for n, one in enumerate(asked)
        ]
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(lambda n=number: app.state.service.queue.waiting == n)
        hold.set()
        for thread in threads:
            thread.join()
    assert [found[number]["reply"] for number in (0, 1, 4)] == ["7", "5", "7"]
    assert found[2]["reply"]["reply"] == "5"
    assert found[3]["choices"][0]["message"]["content"] == "5"


def test_under_load_less_is_planned_and_generated():
    listener = careful()
    assert with_fewer_candidates(listener, 8) is listener
    spared = with_fewer_candidates(listener, 3)
    reply = spared.reply("hello", seed=1)
    assert reply.text == "2" and len(reply.candidates) == 3
    assert len({one.plan for one in reply.candidates}) == 3
    assert spared.generate.config == Config(3, 3, BEAM)
    assert len(listener.reply("hello", seed=1).candidates) == 8  # it is as it was
    assert with_fewer_candidates(listener, 6).generate.config == Config(4, 6, BEAM)
    assert with_fewer_candidates(listener, 1).rerank is None  # a single candidate needs no reranking
    planless = with_fewer_candidates(Listener(PlannedGenerator()), 2)
    assert planless.plan is None and planless.generate.config.candidates == 2


def test_a_narrow_beam_finds_the_likeliest_plans(tiny_generator):
    runtime = TorchRuntime.from_folder(tiny_generator)
    planner = Planner(runtime, PlanTokens.of(runtime.vocabulary))
    state, wants = runtime.prefill(runtime.encode("My dog")), [Factors("sad"), Factors("sad", act="wishing")]
    state = runtime.pick(state, [0, 0])
    every, narrow = (planner.draft(state, wants, [1, 1], Draw(720, beam=beam)).plans for beam in (72, 3))
    for all_plans, found in zip(every, narrow, strict=True):
        log_chances = {one.plan: one.log_probability for one in all_plans}
        pairs = {(one.plan.mechanisms, one.plan.act) for one in found}
        assert len(pairs) == 3 and len(found) == 3 * len(EXPRESSED_EMOTIONS)
        for one in found:
            assert one.log_probability == pytest.approx(log_chances[one.plan], abs=1e-3)
    by_hand: dict[tuple[str, ...], float] = {}
    for one in every[0]:
        by_hand[one.plan.mechanisms] = by_hand.get(one.plan.mechanisms, 0) + math.exp(one.log_probability)
    likeliest = sorted(by_hand, key=lambda name: -by_hand[name])[:3]
    assert {one.plan.mechanisms for one in narrow[0]} <= set(likeliest)
    assert {one.plan.mechanisms for one in narrow[1]} == set(likeliest)  # the act is given


@pytest.mark.parametrize("candidates", [0, 65, "many", 1.5])
def test_an_odd_number_is_refused(client, candidates):
    assert client.post("/api/reply", json={"text": "a", "candidates": candidates}).status_code == 422
