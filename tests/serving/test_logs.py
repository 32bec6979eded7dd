import logging

import pytest

from listenwell.serving.logs import LOGGER
from tests.serving.fake import fake_app, fake_settings, running

SECRET = "zebrafish"


@pytest.fixture
def lines(caplog, monkeypatch):
    monkeypatch.setattr(LOGGER, "level", logging.INFO)
    caplog.set_level(logging.DEBUG)
    return lambda: "\n".join(logging.Formatter().format(record) for record in caplog.records)


def test_no_word_of_a_user_is_logged(lines, make_client):
    client = make_client(kept=True)
    id = client.post("/api/conversations", json={"persona": [f"I am a {SECRET}."]}).json()["id"]
    for text in (SECRET, f"FAIL {SECRET}", f"INPUT {SECRET}"):
        client.post("/api/reply", json={"text": text})
        client.post("/api/reply", json={"text": text, "stream": True})
        client.post(f"/api/conversations/{id}/messages", json={"text": text})
        client.post(f"/api/conversations/{id}/messages", json={"text": text, "stream": True})
        client.post(
            "/v1/chat/completions", json={"model": "fake", "messages": [{"role": "user", "content": text}]}
        )
    client.post("/api/reply", json={"text": "a", SECRET: 1, "target": {"act": SECRET}})
    client.post("/api/reply", content=f"{{{SECRET}", headers={"Content-Type": "application/json"})
    client.get(f"/{SECRET}?q={SECRET}", headers={"User-Agent": SECRET, "Referer": SECRET})
    client.get(f"/v1/models/{SECRET}")
    client.request(SECRET.upper(), "/api/reply")
    client.get(f"/api/conversations/{SECRET}")
    client.get(f"/static/{SECRET}")
    found = lines()
    assert "POST /api/reply 200" in found
    assert "POST /api/reply 500" in found
    assert "RuntimeError in _answer (fake.py:" in found
    ours = "\n".join(
        line for line in found.splitlines() if "HTTP Request:" not in line
    )  # the client's own log
    assert SECRET not in ours.lower()


def test_a_real_server_logs_none_either(lines, capfd, tmp_path):
    import httpx2

    app = fake_app(fake_settings(store=str(tmp_path / "talks")))
    with running(app) as url:
        for path in ("/api/reply", f"/{SECRET}"):
            httpx2.post(f"{url}{path}?{SECRET}", json={"text": f"FAIL {SECRET}"})
            httpx2.post(f"{url}{path}", json={"text": f"FAIL {SECRET}", "stream": True})
    shown = "".join(capfd.readouterr())
    ours = [line for line in (lines() + shown).splitlines() if "HTTP Request:" not in line]
    assert any("POST /api/reply 500" in line for line in ours)
    assert SECRET not in "\n".join(ours)
