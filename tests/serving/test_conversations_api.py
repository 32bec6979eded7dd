import json
import threading

import httpx2
import pytest

from listenwell.corpora.own import OwnJsonl
from listenwell.dialogue import Dialogue
from listenwell.serving.security import VISITOR, VISITOR_HEADER
from tests.serving.fake import FakeListener, fake_app, fake_settings, running, wait_until
from tests.serving.test_own_api import events


def begin(client, **body):
    answer = client.post("/api/conversations", json=body)
    assert answer.status_code == 201
    return answer.json()["id"]


def say(client, id, text, **body):
    answer = client.post(f"/api/conversations/{id}/messages", json={"text": text} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_talk_from_its_beginning_to_its_end(make_client, store_url):
    listener = FakeListener()
    client = make_client(fake_app(fake_settings(store=store_url), listener))
    id = begin(client, persona=["I bake."], model="fake")
    first = say(client, id, "I won!")
    assert (first["number"], first["version"]) == (1, 1)
    assert first["reply"]["reply"] == "You said: I won!"
    say(client, id, "Really!", want={"act": "wishing"}, seed=3)
    seen = listener.seen[-1]
    assert [turn.text for turn in seen.turns] == ["I won!", "You said: I won!", "Really!"]
    assert seen.persona_of("listener").lines == ("I bake.",)
    found = client.get(f"/api/conversations/{id}").json()
    assert [one["said"] for one in found["exchanges"]] == ["I won!", "Really!"]
    assert found["exchanges"][1]["replies"][0]["plan"]["act"] == "wishing"
    assert found["exchanges"][1]["current"] == 1
    (summary,) = client.get("/api/conversations").json()["conversations"]
    assert (summary["id"], summary["exchanges"], summary["begins"]) == (id, 2, "I won!")
    assert client.delete(f"/api/conversations/{id}").status_code == 204
    assert client.get(f"/api/conversations/{id}").status_code == 404
    assert client.get("/api/conversations").json() == {"conversations": []}


def test_a_reply_is_spoken_again_and_both_are_kept(keeping):
    id = begin(keeping)
    assert keeping.post(f"/api/conversations/{id}/again", json={}).status_code == 404
    say(keeping, id, "I won!")
    again = keeping.post(f"/api/conversations/{id}/again", json={"target": {"act": "wishing"}}).json()
    assert (again["number"], again["version"], again["reply"]["plan"]["act"]) == (1, 2, "wishing")
    path = f"/api/conversations/{id}/exchanges/1/current"
    found = keeping.put(path, json={"version": 1}).json()
    assert (found["exchanges"][0]["current"], len(found["exchanges"][0]["replies"])) == (1, 2)
    assert keeping.put(path, json={"version": 3}).status_code == 404


def test_a_reply_asked_for_again_under_its_key_is_the_same(keeping):
    id = begin(keeping)
    say(keeping, id, "I won!")
    path, body = f"/api/conversations/{id}/again", {"target": {"act": "wishing"}, "key": "again-01"}
    first = keeping.post(path, json=body).json()
    assert (first["version"], first["reply"]["target"]) == (2, {"act": "wishing"})
    assert keeping.post(path, json={"key": "again-01"}).json() == first
    streamed = keeping.post(path, json=body | {"stream": True})
    assert events(streamed.text)[-1] == ("reply", first)
    say(keeping, id, "Really!")
    assert keeping.post(path, json=body).json() == first  # of the exchange that was the last one then
    assert keeping.post(path, json=body | {"key": "again-02"}).json()["number"] == 2
    assert keeping.post(path, json={"key": "short"}).status_code == 422
    found = keeping.get(f"/api/conversations/{id}").json()["exchanges"]
    assert [[reply["target"] for reply in one["replies"]] for one in found] == [
        [None, {"act": "wishing"}],
        [None, {"act": "wishing"}],
    ]


def test_a_conversation_begun_again_under_its_key_is_the_same(keeping):
    first = keeping.post("/api/conversations", json={"persona": ["I bake."], "key": "begin-01"})
    again = keeping.post("/api/conversations", json={"key": "begin-01"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert begin(keeping, key="begin-02") != first.json()["id"] != begin(keeping)
    keeping.cookies.clear()  # another visitor
    assert begin(keeping, key="begin-01") != first.json()["id"]


def test_a_wish_is_kept_with_its_reply_and_exported(keeping):
    id = begin(keeping)
    said = say(keeping, id, "I won!", want={"act": "wishing", "mechanisms": []})
    assert said["reply"]["target"] == {"act": "wishing", "mechanisms": []}
    assert say(keeping, id, "Really!")["reply"]["target"] is None
    talk = Dialogue.from_json(keeping.get(f"/api/conversations/{id}/export").text)
    assert json.loads(talk.turns[1].note("target")) == {"act": "wishing", "mechanisms": []}
    assert talk.turns[3].note("target") is None


def test_persona_and_model_can_be_changed(make_client):
    client = make_client(kept=True, models=("fake", "other"))
    id = begin(client)
    found = client.patch(f"/api/conversations/{id}", json={"persona": ["I run."], "model": "other"}).json()
    assert (found["persona"], found["model"]) == (["I run."], "other")
    assert client.patch(f"/api/conversations/{id}", json={"model": "third"}).status_code == 404
    assert client.post("/api/conversations", json={"model": "third"}).status_code == 404
    assert client.patch("/api/conversations/none", json={}).status_code == 404


def test_a_streamed_message(keeping):
    id = begin(keeping)
    answer = keeping.post(f"/api/conversations/{id}/messages", json={"text": "I won!", "stream": True})
    found = events(answer.text)
    assert [name for name, _ in found] == ["waiting", "text", "text", "text", "text", "reply"]
    assert found[-1][1]["reply"]["reply"] == "You said: I won!"
    assert found[-1][1]["version"] == 1
    assert keeping.get(f"/api/conversations/{id}").json()["exchanges"][0]["current"] == 1


def test_a_message_sent_again_is_answered_once(keeping):
    id = begin(keeping)
    first = say(keeping, id, "I won!", key="message-1")
    assert say(keeping, id, "I won!", key="message-1") == first
    streamed = keeping.post(
        f"/api/conversations/{id}/messages", json={"text": "I won!", "key": "message-1", "stream": True}
    )
    assert events(streamed.text)[-1] == ("reply", first)
    assert len(keeping.get(f"/api/conversations/{id}").json()["exchanges"]) == 1


@pytest.mark.parametrize("path", ["messages", "again"])
def test_what_is_sent_again_while_it_is_answered_shares_the_answer(tmp_path, path):
    hold = threading.Event()
    listener = FakeListener()
    app = fake_app(fake_settings(store=str(tmp_path / "talks")), listener)
    with running(app) as url, httpx2.Client(base_url=url, timeout=20) as client:
        id = begin(client)
        body = {"key": "message-1", "text": "I won!"}
        if path == "again":
            say(client, id, body.pop("text"))
        before = len(listener.seen)
        listener.hold, found = hold, []

        def send():
            found.append(client.post(f"/api/conversations/{id}/{path}", json=body).json())

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: any(place.watchers == 3 for place, _ in app.state.service.under_way.values()))
        hold.set()
        for thread in threads:
            thread.join()
        assert len(client.get(f"/api/conversations/{id}").json()["exchanges"][0]["replies"]) == before + 1
    assert len(listener.seen) == before + 1
    assert found[0] == found[1] == found[2]
    assert not app.state.service.under_way


def test_a_reply_whose_client_went_away_while_it_was_made_is_kept(tmp_path):
    hold = threading.Event()
    app = fake_app(fake_settings(store=str(tmp_path / "talks")), FakeListener(hold=hold))
    with running(app) as url, httpx2.Client(base_url=url) as client:
        id = begin(client)
        with pytest.raises(httpx2.ReadTimeout):
            client.post(f"/api/conversations/{id}/messages", json={"text": "I won!"}, timeout=0.3)
        hold.set()
        wait_until(lambda: client.get(f"/api/conversations/{id}").json()["exchanges"][0]["replies"])


def test_what_could_not_be_answered_is_kept_and_can_be_answered_later(keeping):
    id = begin(keeping)
    answer = keeping.post(f"/api/conversations/{id}/messages", json={"text": "FAIL", "key": "message-1"})
    assert answer.status_code == 500
    (exchange,) = keeping.get(f"/api/conversations/{id}").json()["exchanges"]
    assert (exchange["said"], exchange["replies"], exchange["current"]) == ("FAIL", [], None)
    assert say(keeping, id, "Hello?")["number"] == 2


def test_a_wrong_wish_keeps_nothing(keeping):
    id = begin(keeping)
    path = f"/api/conversations/{id}/messages"
    assert keeping.post(path, json={"text": "a", "want": {"expressed_emotion": "blue"}}).status_code == 422
    assert keeping.get(f"/api/conversations/{id}").json()["exchanges"] == []


def test_visitors_do_not_see_each_other(keeping):
    id = begin(keeping)
    say(keeping, id, "my secret")
    token = keeping.cookies[VISITOR]
    keeping.cookies.clear()
    stranger = {VISITOR_HEADER: "A" * 43}
    for headers in ({}, stranger, {VISITOR_HEADER: token[:-1]}, {VISITOR_HEADER: "x" * 5000}):
        assert keeping.get("/api/conversations", headers=headers).json() == {"conversations": []}
        assert keeping.get(f"/api/conversations/{id}", headers=headers).status_code == 404
        assert keeping.get(f"/api/conversations/{id}/export", headers=headers).status_code == 404
        assert keeping.get("/api/conversations/export", headers=headers).text == ""
        assert keeping.delete(f"/api/conversations/{id}", headers=headers).status_code == 404
        assert keeping.delete("/api/conversations", headers=headers).json() == {"deleted": 0}
        message = keeping.post(f"/api/conversations/{id}/messages", json={"text": "a"}, headers=headers)
        assert message.status_code == 404
    own = keeping.get(f"/api/conversations/{id}", headers={VISITOR_HEADER: token})
    assert own.json()["exchanges"][0]["said"] == "my secret"


def test_a_visitor_is_given_a_token_that_scripts_and_sites_cannot_take(make_client):
    first = make_client(kept=True).post("/api/conversations", json={})
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "secure" not in cookie.lower()
    token = first.headers[VISITOR_HEADER]
    assert len(token) == 43
    secure = make_client(base_url="https://localhost", kept=True).post("/api/conversations", json={})
    assert "secure" in secure.headers["Set-Cookie"].lower()
    assert secure.headers[VISITOR_HEADER] != token
    assert len(first.json()["id"]) == 22


def test_the_store_does_not_hold_tokens(make_client, tmp_path):
    client = make_client(kept=True)
    begin(client)
    token = client.cookies[VISITOR].encode()
    assert not any(token in file.read_bytes() for file in tmp_path.glob("talks.sqlite*"))


def test_an_export_is_what_listenwell_reads(keeping, tmp_path):
    ids = [begin(keeping, persona=["I bake."]), begin(keeping), begin(keeping)]
    say(keeping, ids[0], "one\ntwo </script> \x00")
    say(keeping, ids[1], "three")
    answer = keeping.get("/api/conversations/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert "attachment" in answer.headers["content-disposition"]
    (tmp_path / "talks.jsonl").write_bytes(answer.content)
    reader = OwnJsonl(tmp_path / "talks.jsonl")
    talks = list(reader.read("all"))
    assert not reader.report.skipped
    assert [talk.id for talk in talks] == ids[:2]  # where nothing was said there is nothing to export
    assert talks[0].turns[0].text == "one\ntwo </script> \x00"
    assert talks[0].persona_of("listener").lines == ("I bake.",)
    one = keeping.get(f"/api/conversations/{ids[1]}/export")
    assert Dialogue.from_json(one.text).turns[1].text == "You said: three"
    assert json.loads(one.text)["turns"][1]["notes"]["model"] == "fake"


def test_all_can_be_deleted(keeping):
    for _ in range(3):
        begin(keeping)
    assert keeping.delete("/api/conversations").json() == {"deleted": 3}
    assert keeping.get("/api/conversations").json() == {"conversations": []}


def test_without_a_store_nothing_is_kept_and_that_is_said(make_client, tmp_path):
    client = make_client(store=None)
    for answer in (
        client.post("/api/conversations", json={}),
        client.get("/api/conversations"),
        client.get("/api/conversations/x"),
        client.post("/api/conversations/x/messages", json={"text": "a"}),
        client.get("/api/conversations/export"),
    ):
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "not_stored"
        assert "/api/reply" in answer.json()["error"]["message"]
    assert client.post("/api/reply", json={"text": "a"}).status_code == 200
    assert list(tmp_path.glob("*sqlite*")) == []


def test_a_conversation_deleted_while_it_is_answered(tmp_path):
    hold = threading.Event()
    app = fake_app(fake_settings(store=str(tmp_path / "talks")), FakeListener(hold=hold))
    with running(app) as url, httpx2.Client(base_url=url, timeout=20) as client:
        id = begin(client)
        found = []
        path = f"/api/conversations/{id}/messages"
        thread = threading.Thread(target=lambda: found.append(client.post(path, json={"text": "a"})))
        thread.start()
        wait_until(lambda: app.state.service.queue.running)
        assert client.delete(f"/api/conversations/{id}").status_code == 204
        hold.set()
        thread.join()
    assert found[0].status_code == 404
