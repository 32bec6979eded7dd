import threading

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.serving.page.steps import loaded, replies, say, shown, talk, unfold

pytestmark = pytest.mark.browser


def violations(page):
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing(listener, visit, colours):
    page = visit(listener.address, color_scheme=colours)
    assert violations(page) == []
    talk(page, "CRISIS", "Please call someone.")
    talk(page, "I won!")
    for name in ("Detected emotion", "Plan of the reply", "Other candidates"):
        unfold(page, name)
    page.get_by_role("button", name="questioning").click()
    expect(replies(page)).to_have_count(3)
    say(page, "FAIL")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    listener.hold = threading.Event()
    say(page, "Hello")
    expect(shown(page, "Generating a reply.")).to_be_visible()
    assert violations(page) == []
    listener.hold.set()
    page.get_by_role("button", name="Persona").click()
    assert violations(page) == []


def test_axe_finds_nothing_on_a_phone(listener, visit):
    page = visit(listener.address, viewport={"width": 360, "height": 700}, has_touch=True)
    talk(page, "I won!")
    unfold(page, "Plan of the reply")
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("button", name="New conversation")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 360  # nothing to be pushed sideways


def test_everything_by_keyboard(page):
    keys = page.keyboard
    keys.press("Tab")
    expect(page.get_by_role("link", name="Skip to the message box")).to_be_focused()
    keys.press("Enter")
    keys.type("I won!")
    keys.press("Enter")
    expect(replies(page)).to_have_count(1)
    expect(page.get_by_label("Your message")).to_be_focused()
    for name in ("Other candidates", "Plan of the reply"):
        keys.press("Shift+Tab")
        expect(page.get_by_role("button", name=name)).to_be_focused()
    keys.press("Enter")
    keys.press("Tab")
    keys.press("Tab")
    expect(page.get_by_role("button", name="emotional reaction")).to_be_focused()
    keys.press("Space")
    expect(replies(page)).to_have_count(2)
    expect(page.get_by_role("button", name="emotional reaction", pressed=True)).to_be_focused()
    page.get_by_role("button", name="Persona").focus()
    keys.press("Enter")
    expect(page.get_by_label("Persona", exact=True)).to_be_focused()
    keys.press("Escape")
    expect(page.get_by_role("button", name="Persona")).to_be_focused()
    page.get_by_label("Your message").focus()
    keys.type("One line")
    keys.press("Shift+Enter")
    keys.type("and another")
    expect(page.get_by_label("Your message")).to_have_value("One line\nand another")


def test_a_screen_reader_hears_each_reply_once(page):
    page.evaluate(
        """() => { window.heard = [];
        new MutationObserver(() => window.heard.push(document.getElementById("announcer").textContent))
          .observe(document.getElementById("announcer"), { childList: true }); }"""
    )
    talk(page, "I won!")
    told = "The listener says: (acknowledging, joy) You said: I won!"
    expect(page.locator("#announcer")).to_have_text(told)
    assert page.evaluate("window.heard") == ["Generating a reply.", told]


def test_colours_by_choice_are_kept(listener, visit):
    page = visit(listener.address, color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate(paper)
    assert dark != light
    loaded(page)
    assert page.evaluate(paper) == dark
    page.emulate_media(color_scheme="dark")
    page.get_by_label("Colours").select_option("System default")
    assert page.evaluate(paper) == dark
    page.emulate_media(color_scheme="light")
    assert page.evaluate(paper) == light
