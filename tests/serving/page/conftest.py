from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from listenwell.serving.run import bind
from tests.serving import fake
from tests.serving.page.listener import PageListener

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="package")
def browser():
    """One for all tests of the page."""
    if not CHROMIUM.exists():
        pytest.skip(f"The page is tested in {CHROMIUM}, which is missing: apt-get install chromium")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=8_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Starts services with a listener of their own, on one address and one store; gives the listener back."""
    ports = [0]

    @contextmanager
    def serving(listener=None, factory=None, **settings):
        listener = listener or PageListener()
        settings = {"store": f"sqlite:///{tmp_path}/talks.sqlite", "heartbeat": 0.1} | settings
        app = fake.fake_app(fake.fake_settings(**settings), factory=factory or (lambda name: listener))
        monkeypatch.setattr(fake, "bind", lambda host, port: bind(host, ports[0]))
        with fake.running(app) as address:
            ports[0] = int(address.rpartition(":")[2])
            listener.address = address
            try:
                yield listener
            finally:
                if listener.hold:
                    listener.hold.set()

    return serving


@pytest.fixture(scope="package")
def house(tmp_path_factory):
    """A service that most tests share: each comes as a visitor of its own."""
    listener = PageListener()
    store = f"sqlite:///{tmp_path_factory.mktemp('page')}/talks.sqlite"
    with fake.running(fake.fake_app(fake.fake_settings(store=store, heartbeat=0.1), listener)) as address:
        listener.address = address
        yield listener


@pytest.fixture
def listener(house):
    """The listener of the shared service, as if it were new."""
    house.seen.clear()
    house.batches.clear()
    yield house
    if house.hold:
        house.hold.set()
    vars(house).pop("_answer", None)
    house.hold, house.plan = None, True


@pytest.fixture
def visit(browser):
    """Opens the page as a new visitor; errors in its script, breaches of its policy and requests to other
    hosts fail the test."""
    problems = []
    with ExitStack() as stack:

        def visitor(address, **settings):
            context = browser.new_context(**({"viewport": {"width": 1100, "height": 800}} | settings))
            stack.callback(context.close)
            context.on("weberror", lambda error: problems.append(str(error.error)))
            context.on(
                "request", lambda one: one.url.startswith((address, "blob:")) or problems.append(one.url)
            )
            page = context.new_page()
            page.on("console", lambda one: "Content Security" in one.text and problems.append(one.text))
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            return page

        yield visitor
    assert problems == []


@pytest.fixture
def page(listener, visit):
    """The page as one visitor sees it."""
    return visit(listener.address)
