"""Listeners, annotators and rankers that answer at once, and what starts a service around them."""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import uvicorn

from listenwell.dialogue import Candidate, Factors, Reading, Reply, Scored
from listenwell.errors import InputError
from listenwell.serving.app import make_app
from listenwell.serving.run import bind
from listenwell.serving.settings import Limits, Settings


@dataclass
class FakeListener:
    """Says back what it heard; words in it make it slow, fail, or see a crisis."""

    name: str = "fake"
    plan: object = True
    generate: object = None
    seconds: float = 0.0
    batches: list = field(default_factory=list)
    seen: list = field(default_factory=list)
    hold: threading.Event | None = None
    """While it is not set, nothing is answered."""

    def reply_batch(self, requests):
        self.batches.append(len(requests))
        self.seen += [request.dialogue for request in requests]
        if self.hold:
            assert self.hold.wait(20)
        time.sleep(self.seconds)
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        said = request.dialogue.turns[-1].text
        if "FAIL" in said:
            raise RuntimeError(f"cannot bear {said}")
        if "INPUT" in said:
            raise InputError("This cannot be answered.", "Say something else.")
        plan = replace(request.target or Factors(), emotion="proud")
        scores = (("ranker", 0.5), ("odd", float("nan")))
        candidates = (Candidate(f"You said: {said[:200]}", plan, scores), Candidate("Well done!", plan))
        is_crisis = "CRISIS" in said
        return Reply(
            text="I am worried about you." if is_crisis else candidates[0].text,
            model=self.name,
            seed=request.seed,
            emotion=(Scored("proud", 0.75), Scored("joyful", 0.25)),
            plan=plan,
            candidates=candidates,
            safety=(("crisis", "suicide"),) if is_crisis else None,
            timings=(("generate", 0.1), ("total", 0.1)),
            notices=("noted",),
        )


class FakeAnnotator:
    def annotate_all(self, dialogues, top):
        reading = Reading("act", (Scored("questioning", 0.9),)[:top])
        for one in dialogues:
            turns = [
                replace(turn, readings=(reading,), factors=Factors(act="questioning")) for turn in one.turns
            ]
            yield replace(one, turns=tuple(turns))


class FakeRanker:
    name = "longest first"

    def scores(self, dialogue, replies):
        return np.array([len(reply) for reply in replies], np.float32)


def fake_settings(**changes):
    limits = changes.pop("limits", {})
    limits = Limits(**({"requests_a_minute": 0} | limits))
    return Settings(**({"port": 0, "models": ("fake",), "batch_window": 0.0, "limits": limits} | changes))


def fake_app(settings=None, listener=None, **parts):
    listener = listener or FakeListener()
    factory = parts.pop("factory", lambda name: listener)
    return make_app(settings or fake_settings(), factory, FakeAnnotator, FakeRanker, **parts)


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.005)


@contextmanager
def running(app):
    """The application behind a real socket; yields its address."""
    sock = bind("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    try:
        wait_until(lambda: server.started)
        wait_until(lambda: app.state.service.models.state("fake") != "loading")
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        sock.close()
        assert not thread.is_alive()
