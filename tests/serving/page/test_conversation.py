import json

import pytest
from playwright.sync_api import expect

from tests.serving.page.steps import loaded, replies, said, say, talk, unfold

pytestmark = pytest.mark.browser


def test_a_talk_with_what_is_behind_each_reply(page):
    expect(page.get_by_text("not a human or a therapist")).to_be_visible()
    expect(page.get_by_text("stored on this computer")).to_be_visible()
    talk(page, "I won!")
    expect(page.locator(".panel:visible")).to_have_count(0)
    unfold(page, "Detected emotion")
    expect(page.locator(".bars li").first).to_have_text("proud75 %")
    assert page.locator(".bars .fill").first.evaluate("one => one.style.width") == "75%"
    expect(page.locator(".bars li").nth(2)).to_have_text("sad< 1 %")
    unfold(page, "Plan of the reply")
    expect(page.locator(".plan")).to_have_text("Emotionproud")
    pressed = page.locator(".panel [aria-pressed=true]")
    expect(pressed).to_have_text(["interpretation", "acknowledging", "joy"])
    unfold(page, "Other candidates")
    expect(page.locator(".candidates li").nth(1)).to_contain_text(
        "Plan: emotion proud · mechanisms exploration · act questioning · expressed emotion surprise."
    )
    expect(page.locator(".candidates li").first).to_contain_text("Selected reply:")
    unfold(page, "Other candidates")
    expect(page.locator(".candidates")).to_be_hidden()
    talk(page, "Really!")  # what cannot be steered any more is still told
    expect(page.locator(".plan")).to_have_text(
        "EmotionproudMechanismsinterpretationActacknowledgingExpressed emotionjoy"
    )


def test_steering_keeps_both_replies(page, listener):
    talk(page, "I won!")
    unfold(page, "Plan of the reply")
    page.get_by_role("button", name="questioning").click()
    expect(replies(page)).to_have_count(2)
    expect(replies(page).nth(1)).to_contain_text("(questioning, joy) You said: I won!")
    expect(replies(page).nth(1)).to_contain_text("Requested: questioning.")
    pressed = page.get_by_role("button", name="questioning", pressed=True)
    expect(pressed).to_be_focused()  # where one was
    page.get_by_role("button", name="exploration").click()  # what was asked for stays
    expect(replies(page)).to_have_count(3)
    expect(page.get_by_role("button", name="exploration", pressed=True)).to_be_visible()
    expect(page.get_by_role("button", name="interpretation", pressed=True)).to_be_visible()
    expect(pressed).to_be_visible()
    page.get_by_role("button", name="Let the listener decide").click()
    expect(replies(page).nth(3)).to_contain_text("(acknowledging, joy)")
    replies(page).nth(1).get_by_role("button", name="Continue from this reply").click()
    expect(replies(page).nth(1)).to_contain_text("The conversation continues from this reply.")
    loaded(page)  # what was asked for is kept with the replies
    expect(replies(page).nth(1)).to_contain_text("Requested: questioning.")
    unfold(page, "Plan of the reply")
    expect(page.get_by_text("Dialogue act (requested)")).to_be_visible()
    talk(page, "Well?")
    assert listener.seen[-1].turns[1].text == "(questioning, joy) You said: I won!"
    page.get_by_text("3 more replies").click()
    expect(page.get_by_text("(acknowledging, joy) You said: I won!").first).to_be_visible()


def test_a_feeling_that_was_misheard_and_a_plan_that_was_not_used(page):
    talk(page, "I won!")
    unfold(page, "Detected emotion")
    page.get_by_label("Not how you feel?").select_option("lonely")
    page.get_by_role("button", name="Reply again").click()
    expect(replies(page).nth(1)).to_contain_text("Requested: emotion lonely.")
    unfold(page, "Other candidates")
    page.get_by_role("button", name="Reply with this plan").click()
    expect(replies(page).nth(2)).to_contain_text("(questioning, surprise)")


def test_a_persona_is_used_and_stays(page, listener):
    page.get_by_role("button", name="Persona").click()
    page.get_by_label("Persona", exact=True).fill("x" * 501)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Line 1 is longer than 500")).to_be_visible()
    page.get_by_label("Persona", exact=True).fill("I bake.\n\n I run. ")
    page.get_by_role("button", name="Save", exact=True).click()
    talk(page, "Hello")
    assert listener.seen[-1].persona_of("listener").lines == ("I bake.", "I run.")
    loaded(page)
    expect(page.get_by_text("I bake. And 1 more.")).to_be_visible()
    page.get_by_role("button", name="Persona").click()
    page.get_by_label("Persona", exact=True).fill("I sing.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#persona")).to_be_hidden()
    talk(page, "Again")
    assert listener.seen[-1].persona_of("listener").lines == ("I sing.",)


def test_another_model_can_be_chosen(serve, visit):
    with serve(models=("fake", "other")) as listener:
        page = visit(listener.address)
        talk(page, "Hello")
        page.get_by_label("Model").select_option("other")
        expect(page.get_by_text("It is loaded when")).to_be_hidden()
        loaded(page)
        expect(page.get_by_label("Model")).to_have_value("other")


def test_what_makes_no_plans_cannot_be_steered(serve, visit):
    with serve(models=("fake", "other"), planning=("fake",)) as listener:
        page = visit(listener.address)
        talk(page, "Hello")
        unfold(page, "Plan of the reply")
        expect(page.get_by_role("button", name="questioning")).to_be_visible()
        page.get_by_label("Model").select_option("other")
        expect(page.get_by_role("button", name="questioning")).to_be_hidden()
        expect(page.locator(".plan")).to_contain_text("Actacknowledging")
        page.get_by_label("Model").select_option("fake")
        expect(page.get_by_role("button", name="questioning")).to_be_visible()


def test_a_model_without_plans_says_so(page, listener):
    listener.plan = None
    talk(page, "Hello", "You said: Hello")
    unfold(page, "Plan of the reply")
    expect(page.get_by_text("This model does not plan")).to_be_visible()


def test_conversations_are_listed_exported_and_deleted(page):
    talk(page, "One")
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_text("What is on your mind?")).to_be_visible()
    talk(page, "Two")
    page.get_by_role("button", name="One", exact=True).click()
    expect(said(page)).to_have_text(["One"])
    with page.expect_download() as download:
        page.get_by_role("button", name="Export this conversation").click()
    (line,) = download.value.path().read_text().splitlines()
    assert json.loads(line)["turns"][0]["text"] == "One"
    with page.expect_download() as download:
        page.get_by_role("button", name="Export all").click()
    assert len(download.value.path().read_text().splitlines()) == 2
    page.get_by_role("button", name="Delete this conversation").click()
    page.get_by_role("button", name="Keep it").click()
    expect(said(page)).to_have_text(["One"])
    page.get_by_role("button", name="Delete this conversation").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#conversation-list button")).to_have_text(["Two"])
    page.get_by_role("button", name="Delete all").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("None yet.")).to_be_visible()
    loaded(page)
    expect(page.get_by_text("None yet.")).to_be_visible()


def test_two_visitors_never_mix(listener, visit):
    one, two = visit(listener.address), visit(listener.address)
    for page, name in ((one, "Ann"), (two, "Ben")):
        say(page, f"I am {name}")
    for page, name in ((one, "Ann"), (two, "Ben")):
        expect(replies(page)).to_have_count(1)
        expect(replies(page)).to_contain_text(f"I am {name}")
        loaded(page)
        expect(said(page)).to_have_text([f"I am {name}"])
        expect(page.locator("#conversation-list button")).to_have_text([f"I am {name}"])


def test_markup_is_shown_as_text(page):
    text = "<img src=x onerror=\"document.title='bad'\"> <b>bold</b> &amp; [a](b)\n<script>1</script>"
    page.get_by_role("button", name="Persona").click()
    page.get_by_label("Persona", exact=True).fill("<i>I bake.</i>")
    page.get_by_role("button", name="Save", exact=True).click()
    say(page, text)
    expect(replies(page)).to_have_count(1)
    assert said(page).inner_text() == text
    assert text in replies(page).locator(".words").first.inner_text()
    unfold(page, "Other candidates")
    loaded(page)
    assert said(page).inner_text() == text
    expect(page.get_by_text("<i>I bake.</i>")).to_be_visible()
    assert page.locator("main b, main img, main script, nav i").count() == 0
    assert page.title() == "listenwell"


def test_a_crisis_shows_where_help_is_until_it_is_put_away(page):
    help_ = page.get_by_role("region", name="Where to find help")
    talk(page, "Hello")
    expect(help_).to_be_hidden()
    talk(page, "CONCERN")
    expect(help_).to_contain_text("If it becomes too much")
    talk(page, "CRISIS", "Please call someone.")
    expect(help_).to_contain_text("call 112")
    expect(help_).to_contain_text("113 Zelfmoordpreventie: 113")
    expect(help_.get_by_role("link", name="findahelpline.com")).to_be_visible()
    expect(help_.locator("a[href^='tel:']")).to_have_text(["112", "113"])  # a touch dials
    unfold(page, "Plan of the reply")
    expect(page.get_by_text("a fixed safety reply")).to_be_visible()
    talk(page, "I am better")  # the talk goes on, the banner stays
    expect(help_).to_contain_text("call 112")
    loaded(page)
    expect(help_).to_contain_text("call 112")
    help_.get_by_role("button", name="Hide this").click()
    expect(help_).to_contain_text("If it becomes too much")
    help_.get_by_role("button", name="Hide this").click()
    expect(help_).to_be_hidden()
