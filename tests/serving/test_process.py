"""What holds when the process is ended: politely, and not."""

import os
import signal
import threading
import time

import httpx2
import pytest

from listenwell.serving.security import VISITOR_HEADER
from tests.serving.program import program

ROUNDS = 5


def wait_for_model(url):
    for _ in range(3000):
        if httpx2.get(f"{url}/api/health").json()["status"] == "ready":
            return
        time.sleep(0.01)
    raise AssertionError("the model was not loaded")


@pytest.mark.kill
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(store_url, tmp_path):
    visitor = {VISITOR_HEADER: "v" * 43}
    kept, prefix = {}, set()
    rounds = ROUNDS if store_url.startswith("sqlite") else 2  # PostgreSQL is no part of the process
    for round in range(rounds + 1):
        with (
            program(tmp_path, store_url) as (service, url),
            httpx2.Client(base_url=url, headers=visitor) as client,
        ):
            wait_for_model(url)
            # What was acknowledged before the last kill is there.
            for (id, number), reply in kept.items():
                exchange = client.get(f"/api/conversations/{id}").json()["exchanges"][number - 1]
                assert exchange["replies"][exchange["current"] - 1] == reply
            assert {one["id"] for one in client.get("/api/conversations").json()["conversations"]} >= prefix
            if round < rounds:
                _talk_until_killed(client, service.process, 0.007 * round, kept, prefix)
    assert len(kept) >= 3 * rounds


def _talk_until_killed(client, process, seconds, kept, prefix):
    """Talk; after the third answer the process has so many seconds to live."""
    killer, enough = threading.Timer(seconds, process.kill), len(kept) + 3
    with pytest.raises(httpx2.HTTPError):
        while True:
            id = client.post("/api/conversations", json={}).json()["id"]
            prefix.add(id)
            for text in ("one", "two"):
                answer = client.post(f"/api/conversations/{id}/messages", json={"text": text}).json()
                kept[id, answer["number"]] = answer["reply"]
                if len(kept) == enough:
                    killer.start()
    killer.join()


def test_sigterm_finishes_what_is_running_and_waiting(tmp_path):
    with program(tmp_path, str(tmp_path / "talks"), 0.5) as (service, url):
        wait_for_model(url)
        found = []

        def ask(body):
            found.append(httpx2.post(f"{url}/api/reply", json=body, timeout=20))

        bodies = [{"text": "one"}, {"text": "two"}, {"text": "three", "stream": True}]
        threads = [threading.Thread(target=ask, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        for _ in range(3000):
            health = httpx2.get(f"{url}/api/health").json()
            if health["running"] + health["waiting"] >= 3:
                break
            time.sleep(0.01)
        os.kill(service.process.pid, signal.SIGTERM)
        with pytest.raises(httpx2.HTTPError):  # no new connection is accepted
            while True:
                httpx2.get(f"{url}/api/health", timeout=2)
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in found] == [200, 200, 200]
        assert all("You said: " in answer.text or '"said: "' in answer.text for answer in found)
        service.process.join(10)
        assert service.process.exitcode == -signal.SIGTERM
        assert "Traceback" not in service.errors.read_text()


def test_sigterm_does_not_wait_for_a_model_to_be_loaded(tmp_path):
    with program(tmp_path, str(tmp_path / "talks"), load_seconds=60) as (service, url):
        assert httpx2.post(f"{url}/api/reply", json={"text": "a"}).status_code == 503
        os.kill(service.process.pid, signal.SIGTERM)
        service.process.join(10)
        assert service.process.exitcode is not None


def test_the_first_exchange_is_shown(tmp_path):
    with program(tmp_path, str(tmp_path / "talks")) as (service, _):
        expected = "you › I finally got promoted today!\nlistener › You said: I finally got promoted today!"
        assert service.line() == expected
