import pytest
from typer.testing import CliRunner

from listenwell.cli import app as cli
from listenwell.errors import InputError, ListenwellError, UnknownNameError
from listenwell.serving import run
from listenwell.serving.load_shedding import with_fewer_candidates
from listenwell.serving.run import Server, address, bind
from tests.serving.fake import FakeListener, fake_app, fake_settings


@pytest.fixture
def started(monkeypatch):
    """What `serve` would have run."""
    found = []
    monkeypatch.setattr(
        run, "serve", lambda app, settings, say, browser: found.append((app, settings, browser))
    )
    return found


def serve(*arguments):
    return CliRunner().invoke(cli, ["serve", *arguments], catch_exceptions=True)


def test_options_reach_the_settings(started, tmp_path):
    result = serve(
        *("--host", "0.0.0.0", "--port", "9", "--model", "retrieval", "--model", "prompted"),
        *("--api-key", "k" * 16, "--store", str(tmp_path / "s"), "--country", "NZ", "--no-browser"),
        *("--allow-origin", "https://a.example", "--allow-host", "b.example", "--rate", "7", "--queue", "5"),
    )
    assert result.exit_code == 0, result.exception
    ((_, settings, browser),) = started
    assert (settings.host, settings.port, settings.models) == ("0.0.0.0", 9, ("retrieval", "prompted"))
    assert (settings.store, settings.country, settings.api_key) == (str(tmp_path / "s"), "NZ", "k" * 16)
    assert (settings.origins, settings.hosts) == (("https://a.example",), ("b.example",))
    assert (settings.limits.requests_a_minute, settings.limits.queue) == (7, 5)
    assert not browser
    assert (settings.min_candidates, settings.planning) == (1, ())


def test_a_base_of_ones_own_is_the_first_model(started, tmp_path):
    assert serve("--base", str(tmp_path)).exit_code == 0
    ((_, settings, _),) = started
    assert settings.models == settings.planning == ("instructed",)
    for option in (("--model", "prompted"), ("--weights", str(tmp_path))):
        error = serve("--base", str(tmp_path), *option).exception
        assert isinstance(error, InputError) and "neither --model nor --weights" in str(error)


def test_how_many_replies_are_chosen_from_under_load(started):
    for arguments in (("--steady",), ("--fewest", "3"), ("--model", "prompted", "--model", "planned")):
        assert serve(*arguments).exit_code == 0
    assert [settings.min_candidates for _, settings, _ in started] == [None, 3, 1]
    assert started[-1][1].planning == ("planned",)
    assert serve("--model", "planned", "--without", "plan").exit_code == 0
    assert started[-1][1].planning == ()


def test_by_default_it_is_here_only_and_keeps_talks(started, monkeypatch):
    monkeypatch.delenv("LISTENWELL_API_KEY", raising=False)
    monkeypatch.delenv("LISTENWELL_STORE", raising=False)
    assert serve().exit_code == 0
    assert serve("--no-store").exit_code == 0
    (_, kept, browser), (_, not_kept, _) = started
    assert (kept.host, kept.port, kept.api_key, browser) == ("127.0.0.1", 8000, None, True)
    assert kept.store.startswith("sqlite:///")
    assert not_kept.store is None


def test_a_key_from_the_environment_opens_the_world(started, monkeypatch):
    monkeypatch.delenv("LISTENWELL_API_KEY", raising=False)
    assert isinstance(serve("--host", "0.0.0.0").exception, InputError)
    monkeypatch.setenv("LISTENWELL_API_KEY", "k" * 16)
    assert serve("--host", "0.0.0.0").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--model", "plannd"), UnknownNameError),
        (("--model", "planned", "--model", "promted"), UnknownNameError),
        (("--backend", "llama"), UnknownNameError),
        (("--backend", "openai"), InputError),
    ],
)
def test_what_cannot_be_is_told_before_anything_starts(started, arguments, error):
    assert isinstance(serve(*arguments).exception, error)
    assert not started


def test_a_remote_listener_has_our_annotator_reranker_and_guard(started, monkeypatch):
    from listenwell.annotators.annotator import Annotator
    from listenwell.reranking.reranker import Reranker

    heads = []
    monkeypatch.setattr(Annotator, "load", lambda heads: heads)
    monkeypatch.setattr(Reranker, "load", lambda annotator: heads.append(annotator) or "judges")
    arguments = (
        "--backend",
        "openai",
        "--base-url",
        "http://127.0.0.1:1/v1",
        "--model",
        "tiny",
        "--plans",
        "2",
    )
    assert serve(*arguments).exit_code == 0
    app = started[0][0]
    listener = app.state.service.models._load("tiny")
    assert listener.generate.name == "tiny (remote)"
    assert listener.plan is listener.generate
    assert listener.generate.config.plans == 2
    assert started[0][1].planning == ("tiny",)
    assert (
        with_fewer_candidates(listener, 1).plan.config.plans == 1
    )  # one request to the endpoint instead of two
    assert listener.rerank == "judges"
    assert listener.understand[0] == "emotion"
    assert "act" in listener.understand


def test_a_port_that_is_taken_is_told():
    with bind("127.0.0.1", 0) as taken, pytest.raises(InputError, match="--port"):
        bind("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_the_address_is_one_that_a_browser_can_open(host, shown):
    with bind(host, 0) as sock:
        assert address(host, sock) == f"http://{shown}:{sock.getsockname()[1]}"


def test_a_model_that_cannot_be_loaded_ends_the_service(capsys):
    def load(name):
        raise ListenwellError("The weights are missing.", "Install them.")

    with pytest.raises(ListenwellError, match="weights are missing"):
        run.serve(fake_app(factory=load), fake_settings(), lambda line: None)


def test_the_page_is_opened_where_there_is_a_browser(monkeypatch):
    opened = []

    class Leaves(Server):
        async def main_loop(self):
            await self._greeting

    monkeypatch.setattr(run, "Server", Leaves)
    monkeypatch.setattr(run.webbrowser, "open", opened.append)
    lines = []
    run.serve(fake_app(), fake_settings(), lines.append, open_browser=True)
    assert opened == [lines[0].split()[3]]
    run.serve(fake_app(), fake_settings(), lines.append, open_browser=False)
    assert len(opened) == 1


def test_a_first_exchange_that_fails_leaves_the_service_up(monkeypatch):
    class Broken(FakeListener):
        def reply_batch(self, requests):
            raise RuntimeError

    class Leaves(Server):
        async def main_loop(self):
            await self._greeting
            assert not self.should_exit

    monkeypatch.setattr(run, "Server", Leaves)
    lines = []
    run.serve(fake_app(listener=Broken()), fake_settings(), lines.append)
    assert len(lines) == 1
