"""The same listener around an endpoint of OpenAI's kind: a stub, and our own service."""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.dialogue import Candidate, Dialogue, Factors, Persona, Scored, Turn
from listenwell.errors import InputError
from listenwell.generators.instructions import ACTS, MECHANISMS, PLEASANT_GROUPS, instruction
from listenwell.generators.remote import (
    INSTRUCTION,
    LARGEST,
    Remote,
    RemoteConfig,
    RemoteError,
    messages,
    words_of,
)
from listenwell.labels import ACTS as ALL_ACTS
from listenwell.labels import EXPRESSED_EMOTIONS
from listenwell.labels import MECHANISMS as ALL_MECHANISMS
from listenwell.listener import Listener, Request
from listenwell.pipeline import Rerank, Understand
from tests.serving.fake import FakeListener, fake_app, fake_settings, running

TALK = Dialogue(
    (Turn("speaker", "My dog died."), Turn("listener", "Oh no."), Turn("speaker", "Yesterday.")),
    personas=(Persona("listener", ("I have a cat.",)), Persona("speaker", ("I ski.",))),
)


class Stub(BaseHTTPRequestHandler):
    """Answers with the last line of the instruction, so that a test can see it."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, dict(self.headers), body))
        status, answer = self.server.answer or (
            200,
            {"choices": [{"message": {"content": self._words(body)}}]},
        )
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _words(self, body):
        return f"  {body['messages'][0]['content'].splitlines()[-1]} ({body['messages'][-1]['content']})\n"

    def log_message(self, *_):
        pass


@pytest.fixture
def stub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    server.seen, server.answer = [], None
    server.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def remote(stub, **settings):
    return Remote(RemoteConfig(stub.url, "tiny", **settings))


def test_the_plan_is_an_instruction_and_words_are_messages(stub):
    plan = Factors(
        emotion="devastated", mechanisms=("exploration",), act="questioning", expressed_emotion="caring"
    )
    speech = remote(stub, api_key="secret-key").generate(TALK, [plan], 7)
    ((path, headers, body),) = stub.seen
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret-key"
    assert (body["model"], body["seed"], body["stream"]) == ("tiny", 7, False)
    told = (
        "They feel devastated (sad). In your reply, gently explore what they have not said. "
        "Above all, ask them one question about it. Let caring be heard in it."
    )
    assert body["messages"] == [
        {"role": "system", "content": f"{INSTRUCTION}\nAbout yourself:\nI have a cat.\n{told}"},
        {"role": "user", "content": "My dog died."},
        {"role": "assistant", "content": "Oh no."},
        {"role": "user", "content": "Yesterday."},
    ]
    assert speech.candidates == (Candidate(f"{told} (Yesterday.)", plan),)


def test_each_plan_is_worded_and_doubles_are_left_out(stub):
    plans = [Factors(act="wishing"), Factors(act="wishing"), Factors(act="consoling")]
    pieces = []
    speech = remote(stub).generate(TALK, plans, 1, pieces.append)
    assert [candidate.plan.act for candidate in speech.candidates] == ["wishing", "consoling"]
    assert pieces == [speech.candidates[0].text]
    assert len({body["seed"] for _, _, body in stub.seen}) == 3


def test_plans_follow_the_emotion_and_the_target(stub):
    generator = remote(stub, plans=2)
    sad = generator.plan(TALK, (Scored("sad", 0.9),), Factors(), 1)
    assert [(plan.emotion, plan.act) for plan in sad] == [("sad", "sympathizing"), ("sad", "questioning")]
    glad = generator.plan(TALK, (Scored("joyful", 0.9),), Factors(expressed_emotion="joy"), 1)
    assert [(plan.act, plan.expressed_emotion) for plan in glad] == [
        ("acknowledging", "joy"),
        ("questioning", "joy"),
    ]
    assert generator.plan(TALK, None, Factors(act="wishing"), 1) == (Factors(act="wishing"),)
    assert len(generator.plan(TALK, None, Factors(), 1)) == 2


def test_a_whole_listener_answers_several(stub):
    class Classifiers(Understand):
        def understand(self, dialogue):
            return (Scored("sad", 1.0),)

    class LastFirst(Rerank):
        def rerank(self, dialogue, candidates, target=None):
            return tuple(reversed(candidates))

    generator = remote(stub)
    listener = Listener(generator, Classifiers(), generator, LastFirst())
    replies = listener.reply_batch([Request(TALK, None, 1), Request(TALK, Factors(act="wishing"), 2)])
    assert [reply.plan.act for reply in replies] == ["acknowledging", "wishing"]
    assert replies[0].text == "They feel sad. Above all, acknowledge what they said. (Yesterday.)"
    assert [len(reply.candidates) for reply in replies] == [3, 1]


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"error": {"message": "secret of the endpoint"}}),
        (404, b""),
        (307, b""),
        (200, b"no json"),
        (200, b"\xff"),
        (200, b"[" * 100_000),
        (200, {"choices": []}),
        (200, {"choices": [{"message": {"content": None}}]}),
        (200, {"choices": [{"message": {"content": "  "}}]}),
        (200, b"a" * (LARGEST + 1)),
    ],
)
def test_an_endpoint_that_fails_is_told_as_such(stub, answer):
    stub.answer = answer
    with pytest.raises(RemoteError) as failed:
        remote(stub).generate(TALK, (), 1)
    assert "secret" not in str(failed.value)


def test_nobody_there(stub):
    generator = Remote(RemoteConfig("http://127.0.0.1:1/v1", "tiny"))
    with pytest.raises(RemoteError, match="did not answer"):
        generator.generate(TALK, (), 1)


@pytest.mark.parametrize(
    "settings",
    [{"base_url": "ftp://x"}, {"model": ""}, {"plans": 0}, {"plans": 99}, {"base_url": "file:///etc"}],
)
def test_an_endpoint_that_cannot_be(settings):
    with pytest.raises(InputError):
        RemoteConfig(**({"base_url": "http://x/v1", "model": "m"} | settings))


def test_every_label_has_words():
    assert set(ACTS) == set(ALL_ACTS)
    assert set(MECHANISMS) == set(ALL_MECHANISMS)
    from listenwell.labels import EMOTION_GROUPS

    assert set(PLEASANT_GROUPS) <= set(EMOTION_GROUPS)
    assert instruction(Factors()) == ""
    assert instruction(Factors(mechanisms=(), expressed_emotion="neutral")) == ""
    assert all(
        expressed_emotion in instruction(Factors(expressed_emotion=expressed_emotion))
        for expressed_emotion in EXPRESSED_EMOTIONS
        if expressed_emotion != "neutral"
    )


@given(st.binary())
def test_any_answer_is_words_or_a_known_error(content):
    with suppress(RemoteError):
        assert isinstance(words_of(content), str)


@given(st.text(min_size=1).filter(str.strip))
def test_what_people_say_stays_in_their_own_message(said):
    found = messages(Dialogue((Turn("speaker", said),)), Factors(act="wishing"))
    assert found[0]["content"] == f"{INSTRUCTION}\nAbove all, wish them well."
    assert found[1:] == [{"role": "user", "content": said}]


def test_our_own_service_is_such_an_endpoint():
    inner = FakeListener(name="inner")
    key = "k" * 20
    with running(fake_app(fake_settings(api_key=key), inner)) as url:
        generator = Remote(RemoteConfig(f"{url}/v1", "fake", key))
        outer = Listener(generator, plan=generator)
        with running(fake_app(fake_settings(), outer)) as front:
            import httpx2

            answer = httpx2.post(f"{front}/api/reply", json={"text": "I won!", "want": {"act": "wishing"}})
            assert answer.json()["reply"] == "You said: I won!"
            assert answer.json()["plan"] == {"act": "wishing"}
            assert answer.json()["model"] == "fake (remote)"
            stopped = httpx2.post(f"{front}/api/reply", json={"text": "FAIL"})
            assert stopped.status_code == 502
    assert inner.seen[0] == Dialogue((Turn("speaker", "I won!"),))
