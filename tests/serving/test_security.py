import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from listenwell.errors import InputError
from listenwell.serving import security
from listenwell.serving.limits import MOST_CLIENTS, LimitRate, client_of
from listenwell.serving.security import CONTENT_SECURITY_POLICY, host_name, is_key
from listenwell.serving.settings import Limits, Settings, is_loopback
from tests.serving.fake import fake_app, fake_settings

KEY = "a-key-of-24-characters-x"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_beyond_this_computer_a_key_is_needed(host):
    with pytest.raises(InputError, match="no API key"):
        Settings(host=host)
    assert Settings(host=host, api_key=KEY).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_on_this_computer_none_is(host):
    assert is_loopback(Settings(host=host).host)


@pytest.mark.parametrize("key", ["", "short", "with a space in the middle", "ümläute-sind-keine-tokens"])
def test_a_weak_key_is_refused(key):
    with pytest.raises(InputError, match="API key"):
        Settings(api_key=key)


def test_a_key_is_never_shown():
    assert KEY not in repr(Settings(api_key=KEY))


@pytest.mark.parametrize("settings", [{"models": ()}, {"models": ("a", "a")}, {"port": 70_000}])
def test_settings_that_cannot_be(settings):
    with pytest.raises(InputError):
        Settings(**settings)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {KEY}x"}, 401),
        ({"Authorization": f"Basic {KEY}"}, 401),
        ({"Authorization": f"Bearer {KEY[:-1]}"}, 401),
        ({"Authorization": b"Bearer \xff\xfe"}, 401),
        ({"Authorization": f"Bearer {KEY}"}, 200),
        ({"authorization": f"bearer  {KEY}"}, 200),
        ({"X-API-Key": KEY}, 200),
    ],
)
def test_the_key_opens_the_door(make_client, headers, status):
    client = make_client(kept=True, api_key=KEY)
    answer = client.post("/api/reply", json={"text": "a"}, headers=headers)
    assert answer.status_code == status
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert client.get("/api/conversations", headers=headers).status_code == status
    assert client.get("/v1/models", headers=headers).status_code == status
    for open_path in ("/", "/docs", "/api/health", "/api/about", "/openapi.json"):
        assert client.get(open_path, headers=headers).status_code == 200


def test_keys_are_compared_in_constant_time(monkeypatch):
    seen = []
    monkeypatch.setattr(security.hmac, "compare_digest", lambda a, b: seen.append((a, b)) or a == b)
    assert is_key(KEY, KEY)
    assert not is_key("", KEY)
    assert [len(a) == len(b) == 32 for a, b in seen] == [True, True]  # even the length tells nothing


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
def test_only_the_same_key_is_the_key(given_key, key):
    assert is_key(given_key, key) == (given_key == key)


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 200), ("127.0.0.1:8000", 200), ("[::1]:80", 200), ("evil.example", 421), ("", 421)],
)
def test_another_name_that_leads_here_is_refused(make_client, host, status):
    assert make_client().get("/v1/models", headers={"Host": host}).status_code == status


def test_further_names_can_be_allowed(make_client):
    client = make_client(hosts=("Talk.Example",))
    assert client.get("/v1/models", headers={"Host": "talk.example:443"}).status_code == 200


@given(st.text(st.characters(codec="latin-1")))
def test_any_host_header_can_be_read(header):
    assert isinstance(host_name(header), str)


@pytest.mark.parametrize("path", ["/", "/api/health", "/nothing", "/static/nothing", "/docs", "/api/reply"])
def test_every_answer_has_the_headers(client, path):
    headers = client.get(path).headers
    assert headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] in ("no-store", "no-cache")
    assert "server" not in headers


def test_the_policy_lets_nothing_in_from_elsewhere():
    rules = dict(rule.split(" ", 1) for rule in CONTENT_SECURITY_POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    assert rules["base-uri"] == "'none'"
    assert {source for rule in rules.values() for source in rule.split()} == {"'none'", "'self'", "data:"}


def test_other_sites_may_not_call_unless_they_are_named(make_client):
    asking = {"Origin": "https://friend.example", "Access-Control-Request-Method": "POST"}
    closed = make_client().options("/api/reply", headers=asking)
    assert closed.status_code == 405
    assert "Access-Control-Allow-Origin" not in closed.headers
    client = make_client(origins=("https://friend.example",))
    allowed = client.options("/api/reply", headers=asking)
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://friend.example"
    stranger = client.get("/api/health", headers={"Origin": "https://foe.example"})
    assert "Access-Control-Allow-Origin" not in stranger.headers


def test_a_form_of_another_site_is_not_heard(client):
    answer = client.post("/api/reply", content='{"text": "a"}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 422


def test_a_large_body_is_refused_before_and_while_it_is_read(make_client):
    client = make_client(limits={"body_bytes": 1000})
    assert client.post("/api/reply", json={"text": "a" * 900}).status_code == 200
    said = client.post("/api/reply", json={"text": "a" * 1000})
    in_parts = client.post(
        "/api/reply",
        content=(b"a" * 100 for _ in range(11)),
        headers={"Content-Type": "application/json"},
    )
    for answer in (said, in_parts):
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "too_large"


def test_a_megabyte_is_too_much(client):
    assert Limits().body_bytes < 10**6
    assert client.post("/api/reply", json={"text": "a" * 10**6}).status_code == 413


def test_too_many_requests_are_refused_with_the_time_to_wait(make_client):
    client = make_client(limits={"requests_a_minute": 3})
    assert [client.get("/v1/models").status_code for _ in range(4)] == [200, 200, 200, 429]
    answer = client.get("/v1/models")
    assert 1 <= int(answer.headers["Retry-After"]) <= 20
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert client.get("/api/health").status_code == 200  # asking how it is costs nothing


def test_the_bucket_fills_again_and_each_has_their_own():
    now = [0.0]
    rate = LimitRate(None, 60, clock=lambda: now[0])
    assert [rate.take("a") for _ in range(60)] == [0.0] * 60
    assert rate.take("a") == pytest.approx(1.0)
    assert rate.take("b") == 0.0
    now[0] = 0.5
    assert rate.take("a") == pytest.approx(0.5)
    now[0] = 2.6
    assert [rate.take("a"), rate.take("a")] == [0.0, 0.0]
    assert rate.take("a") == pytest.approx(0.4)


def test_memory_for_clients_is_bounded():
    rate = LimitRate(None, 60, clock=lambda: 0.0)
    for number in range(MOST_CLIENTS + 5):
        rate.take(str(number))
    assert len(rate._buckets) == MOST_CLIENTS


@pytest.mark.parametrize(
    ("address", "counted"),
    [("1.2.3.4", "1.2.3.4"), ("2001:db8::1", "2001:db8::/64"), ("testclient", "testclient"), (None, "")],
)
def test_whom_a_request_counts_for(address, counted):
    assert client_of({"client": (address, 1) if address else None}) == counted


def test_the_port_answers_while_the_model_is_loaded(tmp_path):
    import threading

    go_on = threading.Event()

    def slow(name):
        assert go_on.wait(10)
        raise InputError("The weights are missing.", "Install them.")

    with TestClient(fake_app(fake_settings(), factory=slow), base_url="http://localhost") as client:
        assert client.get("/api/health").json()["status"] == "loading"
        answer = client.post("/api/reply", json={"text": "a"})
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers
        assert "being loaded" in answer.json()["error"]["message"]
        go_on.set()
        for _ in range(200):
            if client.get("/api/health").json()["status"] == "failed":
                break
        answer = client.post("/api/reply", json={"text": "a"})
        assert answer.status_code == 503
        assert "The weights are missing. Install them." in answer.json()["error"]["message"]


def test_another_model_is_loaded_when_it_is_first_chosen(make_client):
    from tests.serving.fake import FakeListener, wait_until

    app = fake_app(fake_settings(models=("fake", "other")), factory=lambda name: FakeListener(name=name))
    client = make_client(app)
    states = {model["name"]: model["state"] for model in client.get("/api/health").json()["models"]}
    assert states == {"fake": "ready", "other": "asleep"}
    client.post("/api/reply", json={"text": "a", "model": "other"})
    wait_until(lambda: app.state.service.models.state("other") == "ready")
    assert client.post("/api/reply", json={"text": "a", "model": "other"}).json()["model"] == "other"
    assert client.post("/api/reply", json={"text": "a", "model": "third"}).status_code == 404
