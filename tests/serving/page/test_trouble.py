import json
import threading
import urllib.request

import pytest
from playwright.sync_api import expect

from tests.serving.fake import wait_until
from tests.serving.page.listener import PageListener
from tests.serving.page.steps import loaded, replies, said, say, shown, talk, unfold
from tests.serving.page.wire import wire

pytestmark = pytest.mark.browser

OTHER = {
    "method": "POST",
    "headers": {"Content-Type": "application/json"},
    "body": '{"text": "I was here first"}',
}


def under_way(listener):
    with urllib.request.urlopen(f"{listener.address}/api/health") as answer:
        found = json.loads(answer.read())
    return found["waiting"] + found["running"]


def test_a_reload_loses_nothing(page, listener):
    talk(page, "One")
    listener.hold = threading.Event()
    say(page, "Two")
    expect(shown(page, "Generating a reply.")).to_be_visible()
    say(page, "Three")
    expect(shown(page, "sent after the previous message")).to_be_visible()
    page.get_by_label("Your message").fill("half a sent")
    loaded(page)
    expect(said(page)).to_have_text(["One", "Two", "Three"])
    expect(page.get_by_label("Your message")).to_have_value("half a sent")
    listener.hold.set()
    expect(replies(page)).to_have_count(3)
    loaded(page)
    expect(said(page)).to_have_text(["One", "Two", "Three"])
    expect(replies(page)).to_have_count(3)


def test_the_first_message_of_all_survives_a_lost_connection(page):
    page.context.set_offline(True)
    say(page, "One")
    expect(shown(page, "The connection is lost. Your message is saved here")).to_be_visible()
    say(page, "Two")
    page.context.set_offline(False)
    expect(replies(page)).to_have_count(2)
    expect(said(page)).to_have_text(["One", "Two"])
    loaded(page)
    expect(said(page)).to_have_text(["One", "Two"])
    expect(page.locator("#conversation-list button")).to_have_text(["One"])


def test_a_conversation_whose_beginning_is_not_heard_of_is_begun_once(page):
    lost = []

    def lose(route):
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch())  # the service has it, and nobody hears of that
            route.abort()
        else:
            route.continue_()

    page.route("**/api/conversations", lose)
    say(page, "One")
    expect(shown(page, "The connection is lost.")).to_be_visible()
    expect(replies(page)).to_have_count(1)
    found = page.evaluate("fetch('/api/conversations').then((answer) => answer.json())")
    assert [talk["id"] for talk in found["conversations"]] == [lost[0].json()["id"]]


def test_a_message_can_be_taken_back_before_it_is_sent(page):
    talk(page, "One")
    page.context.set_offline(True)
    say(page, "Two")
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_label("Your message")).to_have_value("Two")
    expect(said(page)).to_have_text(["One"])
    page.context.set_offline(False)
    loaded(page)
    expect(said(page)).to_have_text(["One"])


def test_a_restarted_server_goes_on_where_it_was(serve, visit):
    with serve() as listener:
        page = visit(listener.address)
        talk(page, "One")
        unfold(page, "Plan of the reply")
    say(page, "Two")
    page.get_by_role("button", name="Try now").click()
    expect(shown(page, "Next try in")).to_be_visible()
    with serve() as listener:
        page.get_by_role("button", name="Try now").click()
        expect(replies(page)).to_have_count(2)
        assert [turn.text for turn in listener.seen[-1].turns][::2] == ["One", "Two"]
        loaded(page)
        expect(said(page)).to_have_text(["One", "Two"])


def test_a_server_that_forgot_everything_still_gets_what_was_not_answered(serve, visit, tmp_path):
    with serve() as listener:
        page = visit(listener.address)
        talk(page, "One")
    say(page, "Two")
    expect(page.get_by_role("button", name="Try now")).to_be_visible()
    with serve(store=f"sqlite:///{tmp_path}/empty.sqlite"):
        page.get_by_role("button", name="Try now").click()
        page.get_by_role("button", name="Send it in a new conversation").click()
        expect(replies(page)).to_have_count(1)
        expect(said(page)).to_have_text(["Two"])
    say(page, "Three")
    with serve(store=f"sqlite:///{tmp_path}/emptier.sqlite"):
        loaded(page)
        expect(shown(page, "no longer on the server. What had no reply yet is sent in this")).to_be_visible()
        expect(replies(page)).to_contain_text("You said: Three")
        loaded(page)
        expect(said(page)).to_have_text(["Three"])


def test_a_message_whose_reply_was_lost_is_answered_after_a_reload(page, listener):
    talk(page, "One")
    listener.hold = threading.Event()
    say(page, "Two")
    wait_until(lambda: len(listener.batches) == 2)
    page.evaluate("localStorage.removeItem('listenwell.outbox')")  # as another browser of the same visitor
    page.goto("about:blank")
    listener.hold.set()
    page.goto(listener.address)
    expect(replies(page).nth(1)).to_contain_text("You said: Two")
    expect(said(page)).to_have_text(["One", "Two"])


def test_waiting_is_told_with_the_place_in_the_line(serve, visit):
    listener = PageListener(hold=threading.Event())
    with serve(listener, limits={"batch": 1}):
        page = visit(listener.address)
        for number in (1, 2):  # others, who came before
            page.evaluate("(body) => { fetch('/api/reply', body) }", OTHER)
            wait_until(lambda number=number: under_way(listener) == number)
        say(page, "Hello")
        expect(shown(page, "One request is ahead of yours. Waiting for 1 s.")).to_be_visible()
        listener.hold.set()
        expect(replies(page)).to_contain_text("You said: Hello")


def test_a_connection_that_breaks_while_a_reply_is_made(listener, visit):
    listener.hold = threading.Event()
    with wire(listener.address) as way:
        page = visit(way.address)
        say(page, "Hello")
        expect(shown(page, "Generating a reply.")).to_be_visible()
        wait_until(lambda: listener.batches == [1])
        page.context.set_offline(True)
        way.cut()
        expect(shown(page, "The connection is lost.")).to_be_visible()
        listener.hold.set()
        page.context.set_offline(False)
        expect(replies(page)).to_have_count(1)
        loaded(page)
        expect(said(page)).to_have_text(["Hello"])
        expect(replies(page)).to_have_count(1)
    assert listener.batches == [1]  # answered once


def test_steering_whose_reply_is_lost_is_not_done_twice(listener, visit):
    with wire(listener.address) as way:
        page = visit(way.address)
        talk(page, "I won!")
        unfold(page, "Plan of the reply")
        listener.hold = threading.Event()
        page.get_by_role("button", name="questioning").click()
        expect(shown(page, "Generating a reply.")).to_be_visible()  # browsers repeat what was unanswered
        wait_until(lambda: listener.batches == [1, 1])
        page.context.set_offline(True)
        way.cut()
        expect(shown(page, "Next try in")).to_be_visible()
        listener.hold.set()
        wait_until(lambda: under_way(listener) == 0)
        page.context.set_offline(False)
        expect(replies(page)).to_have_count(2)
        expect(page.get_by_role("button", name="questioning", pressed=True)).to_be_visible()
    assert listener.batches == [1, 1]


def test_a_model_that_wakes_up(serve, visit, monkeypatch):
    awake = threading.Event()
    monkeypatch.setattr("tests.serving.fake.wait_until", lambda condition, seconds=10: None)
    listener = PageListener()

    def load(name):
        assert awake.wait(20)
        return listener

    with serve(listener, factory=load):
        page = visit(listener.address)
        expect(page.get_by_text("The model fake is loading.")).to_be_visible()
        say(page, "Hello")
        expect(shown(page, "Next try in")).to_be_visible()
        awake.set()
        page.get_by_role("button", name="Try now").click()
        expect(replies(page)).to_contain_text("You said: Hello")
        expect(page.get_by_text("The model fake is loading.")).to_be_hidden()


def test_what_failed_is_said_in_words(page, listener):
    say(page, "FAIL")
    expect(shown(page, "Internal error. Try again")).to_be_visible()
    expect(page.get_by_role("button", name="Take it back")).to_be_hidden()  # the server has it
    listener._answer = lambda request: PageListener()._answer(_Calm(request))
    page.get_by_role("button", name="Try again").click()
    expect(replies(page)).to_contain_text("You said: calm")
    expect(said(page)).to_have_text(["FAIL"])
    page.get_by_label("Your message").fill("x" * 20_001)
    expect(page.get_by_text("too long by 1 characters")).to_be_visible()
    page.get_by_label("Your message").press("Enter")
    expect(said(page)).to_have_text(["FAIL"])


class _Calm:
    """The same request, with words that do not fail."""

    def __init__(self, request):
        from listenwell.dialogue import Dialogue, Turn

        self.dialogue = Dialogue((Turn("speaker", "calm"),))
        self.target, self.seed = request.target, request.seed


def test_steering_that_fails_says_so_and_keeps_the_reply(page, listener):
    talk(page, "I won!")
    unfold(page, "Plan of the reply")
    listener.plan = None  # as another model
    page.get_by_role("button", name="questioning").click()
    expect(shown(page, "The model fake does not plan")).to_be_visible()
    expect(replies(page)).to_have_count(1)
    listener.plan = True
    page.get_by_role("button", name="consoling").click()
    expect(shown(page, "The model fake does not plan")).to_be_hidden()
    expect(replies(page)).to_have_count(2)


def test_a_service_that_keeps_nothing(serve, visit):
    with serve(store=None) as listener:
        page = visit(listener.address)
        expect(page.get_by_text("Nothing you write is stored")).to_be_visible()
        talk(page, "One")
        unfold(page, "Plan of the reply")
        page.get_by_role("button", name="questioning").click()
        expect(replies(page)).to_have_count(2)
        talk(page, "Two")
        assert [turn.text for turn in listener.seen[-1].turns] == [
            "One",
            "(questioning, joy) You said: One",
            "Two",
        ]
        loaded(page)
        expect(said(page)).to_have_text(["One", "Two"])
        with page.expect_download() as download:
            page.get_by_role("button", name="Export this conversation").click()
        assert download.value.path().read_text().count('"text"') == 4
        assert page.evaluate("Object.keys(localStorage).length") == 0
        other = page.context.new_page()
        other.goto(listener.address)
        expect(other.get_by_text("None yet.")).to_be_visible()


def test_a_service_with_a_key_asks_for_it(serve, visit):
    with serve(api_key="a-long-enough-key") as listener:
        page = visit(listener.address)
        page.get_by_label("Key", exact=True).fill("a wrong key")
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_text("not the right one")).to_be_visible()
        page.get_by_label("Key", exact=True).fill("a-long-enough-key")
        page.get_by_role("button", name="Use this key").click()
        talk(page, "Hello")
        loaded(page)
        expect(said(page)).to_have_text(["Hello"])
