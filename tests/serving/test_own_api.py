import json

import pytest

from listenwell.serving.schemas import MOST_CHARACTERS, MOST_TURNS
from listenwell.serving.security import VISITOR, VISITOR_HEADER
from listenwell.serving.settings import NOTICE
from tests.serving.fake import FakeListener, fake_app, fake_settings, wait_until


def events(text):
    """(name, data) of server-sent events."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines.get("event"), json.loads(lines["data"])))
    return found


def test_a_reply_comes_with_everything_it_knows(client):
    answer = client.post("/api/reply", json={"text": "I won!", "target": {"act": "Questioning"}, "seed": 7})
    assert answer.status_code == 200
    found = answer.json()
    assert found["reply"] == "You said: I won!"
    assert found["seed"] == 7
    assert found["emotion"][0] == {"label": "proud", "probability": 0.75}
    assert found["plan"] == {"emotion": "proud", "act": "questioning"}
    assert [one["text"] for one in found["candidates"]] == ["You said: I won!", "Well done!"]
    assert found["candidates"][0]["scores"] == {"ranker": 0.5}  # NaN is no JSON
    assert found["safety"] is None
    assert found["timings"]["queue"] >= 0
    assert found["notices"] == ["noted"]


def test_history_and_persona_reach_the_listener(make_client):
    listener = FakeListener()
    client = make_client(fake_app(listener=listener))
    history = [{"speaker": "speaker", "text": "one"}, {"speaker": "listener", "text": "two"}]
    client.post("/api/reply", json={"text": "three", "history": history, "persona": ["I bake."]})
    (seen,) = listener.seen
    assert [(turn.speaker, turn.text) for turn in seen.turns] == [
        ("speaker", "one"),
        ("listener", "two"),
        ("speaker", "three"),
    ]
    assert seen.persona_of("listener").lines == ("I bake.",)


def test_a_crisis_is_flagged(client):
    assert client.post("/api/reply", json={"text": "CRISIS"}).json()["safety"] == {"crisis": "suicide"}


def test_streamed_pieces_make_the_reply(client):
    answer = client.post("/api/reply", json={"text": "two  words\nhere", "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = events(answer.text)
    assert found[0] == ("waiting", {"ahead": 0})
    pieces = [data["text"] for name, data in found if name == "text"]
    assert len(pieces) == 5
    name, reply = found[-1]
    assert name == "reply"
    assert "".join(pieces) == reply["reply"] == "You said: two  words\nhere"


def test_an_error_after_the_stream_began_is_an_event(client):
    name, data = events(client.post("/api/reply", json={"text": "FAIL", "stream": True}).text)[-1]
    assert name == "error"
    assert data["error"]["code"] == "failed"
    assert "bear" not in data["error"]["message"]


def test_annotate_reads_every_turn(client):
    turns = [{"speaker": "speaker", "text": "Hi"}, {"speaker": "listener", "text": "How are you?"}]
    found = client.post("/api/annotate", json={"turns": turns}).json()["turns"]
    assert [turn["text"] for turn in found] == ["Hi", "How are you?"]
    assert found[1]["readings"] == [{"head": "act", "scores": [{"label": "questioning", "probability": 0.9}]}]
    assert found[1]["factors"] == {"act": "questioning"}


def test_rank_puts_the_best_first(client):
    found = client.post("/api/rank", json={"text": "Hi", "replies": ["a", "ccc", "bb"]}).json()
    assert found == {
        "ranker": "longest first",
        "replies": [
            {"text": "ccc", "score": 3.0, "index": 1, "place": 1},
            {"text": "bb", "score": 2.0, "index": 2, "place": 2},
            {"text": "a", "score": 1.0, "index": 0, "place": 0},
        ],
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": " \n"}, "text"),
        ({"text": 3}, "text"),
        ({"text": "a" * (MOST_CHARACTERS + 1)}, "text"),
        ({"text": "a", "history": [{"speaker": "speaker", "text": "b"}] * (MOST_TURNS + 1)}, "history"),
        ({"text": "a", "history": [{"speaker": "nobody", "text": "b"}]}, "history.0.speaker"),
        ({"text": "a", "persona": ["x" * 501]}, "persona.0"),
        ({"text": "a", "persona": ["x"] * 101}, "persona"),
        ({"text": "a", "seed": -1}, "seed"),
        ({"text": "a", "mood": 1}, "mood"),
        ({"text": "\ud800"}, "text"),
        ([], None),
    ],
)
def test_what_is_out_of_bounds_is_refused_with_its_name(client, body, field):
    answer = client.post("/api/reply", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == field
    assert answer.json()["error"]["code"] == "invalid_value"


def test_an_unknown_label_names_the_near_ones(client):
    answer = client.post("/api/reply", json={"text": "a", "target": {"act": "questionning"}})
    assert answer.status_code == 422
    assert "'questioning'" in answer.json()["error"]["message"]


def test_a_wish_needs_a_model_that_plans(make_client):
    client = make_client(fake_app(listener=FakeListener(plan=None)))
    answer = client.post("/api/reply", json={"text": "a", "target": {"act": "questioning"}})
    assert answer.status_code == 422
    assert "does not plan" in answer.json()["error"]["message"]
    assert client.post("/api/reply", json={"text": "a", "target": {}}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe\xff",
        b'{"text": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"text": "a", "seed": ' + b"9" * 5000 + b"}",
    ],
)
def test_no_body_however_broken_is_a_server_error(client, body):
    answer = client.post("/api/reply", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "text", ["<|im_end|>", "<script>alert(1)</script>", "a\x00b\x1b[2J", "💔\u202ex", "${7*7}"]
)
def test_text_is_data(client, text):
    assert client.post("/api/reply", json={"text": text}).json()["reply"] == f"You said: {text}"


def test_known_errors_of_the_listener_say_what_to_do(client):
    answer = client.post("/api/reply", json={"text": "INPUT"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "This cannot be answered. Say something else."


def test_unknown_errors_say_nothing_of_their_cause(client):
    answer = client.post("/api/reply", json={"text": "FAIL secret"})
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_about_says_what_this_is_not_and_what_is_kept(make_client):
    about = make_client(kept=True).get("/api/about").json()
    assert about["notice"] == NOTICE
    assert "not a human or a therapist" in about["notice"]
    assert about["is_stored"]
    assert "on this computer" in about["stored"]
    assert len(about["labels"]["act"]) == 9
    nothing = make_client().get("/api/about").json()
    assert not nothing["is_stored"]
    assert nothing["stored"].startswith("Nothing")


def test_about_says_which_models_make_plans(make_client):
    def load(name):
        return FakeListener(plan=None if name == "plain" else True)

    def plans(**settings):
        models = ("fake", "plain", "asleep")
        client = make_client(fake_app(fake_settings(models=models, **settings), factory=load))
        client.post("/api/reply", json={"text": "a", "model": "plain"})
        wait_until(lambda: client.app.state.service.models.state("plain") == "ready")
        return [(one["name"], one["plans"]) for one in client.get("/api/about").json()["models"]]

    assert plans() == [("fake", True), ("plain", False), ("asleep", None)]
    assert plans(planning=("asleep",)) == [("fake", True), ("plain", False), ("asleep", True)]
    assert plans(planning=()) == [("fake", True), ("plain", False), ("asleep", False)]


def test_the_page_makes_a_visitor_known_before_anything_is_said(make_client):
    client = make_client(kept=True)
    token = client.get("/").headers[VISITOR_HEADER]
    assert client.cookies[VISITOR] == token
    assert VISITOR_HEADER not in client.get("/").headers  # known by now
    assert client.post("/api/conversations", json={}).headers[VISITOR_HEADER] == token
    assert VISITOR_HEADER not in make_client().get("/").headers  # nothing is kept, nobody need be known


def test_the_page_and_the_docs_are_served(make_client, tmp_path):
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "index.html").write_text("<!doctype html>the page")
    (tmp_path / "static" / "app.js").write_text("let x;")
    client = make_client(fake_app(fake_settings(), static=tmp_path / "static"))
    assert client.get("/").text.endswith("the page")
    script = client.get("/static/app.js")
    assert "javascript" in script.headers["content-type"]
    assert script.headers["Cache-Control"] == "no-cache"
    assert client.get("/static/../app.js").status_code == 404
    assert client.get("/static/%2e%2e/talks.sqlite").status_code == 404
    docs = client.get("/docs").text
    assert "<script" not in docs
    assert "http" not in docs.replace("http://127.0.0.1:8000", "")
    for path in ("/v1/chat/completions", "/api/reply", "/api/annotate", "/api/rank", "/api/conversations"):
        assert f"<code>POST {path}</code>" in docs


def test_without_a_page_there_is_a_word(make_client, tmp_path):
    assert "/docs" in make_client(fake_app(fake_settings(), static=tmp_path / "none")).get("/").text


def test_the_examples_of_the_docs_work(keeping):
    from listenwell.serving.docs_page import example

    schema = keeping.get("/openapi.json").json()
    tried = 0
    for path, operations in schema["paths"].items():
        body = operations.get("post", {}).get("requestBody")
        if body and "{" not in path:
            reference = body["content"]["application/json"]["schema"]
            data = json.loads(example("POST", path, reference, schema).partition("-d '")[2][:-1])
            if path == "/v1/chat/completions":
                data["model"] = "fake"
            assert keeping.post(path, json=data).status_code in (200, 201), path
            tried += 1
    assert tried == 5


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/api/reply", 405)])
def test_unknown_paths_and_methods_have_the_shape_of_errors(client, method, path, status):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
