"""What people do on the page, for tests."""

from playwright.sync_api import expect


def say(page, text):
    """Write and send."""
    page.get_by_label("Your message").fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def talk(page, text, reply=None):
    """Write, send, and wait for the reply."""
    count = said(page).count()
    say(page, text)
    expect(said(page)).to_have_count(count + 1)
    found = page.locator(".exchange").last.get_by_role("article").locator(".words").first
    expect(found).to_have_text(reply or f"(acknowledging, joy) You said: {text}")


def replies(page):
    """All replies on the page."""
    return page.get_by_role("article")


def said(page):
    """What the visitor said, as it is shown."""
    return page.locator(".said .words")


def unfold(page, name):
    """Open a fold of the last reply that has it."""
    page.get_by_role("button", name=name).last.click()


def loaded(page):
    """Load the page again."""
    page.reload()
    page.wait_for_selector("html[data-ready]")


def shown(page, words):
    """Words in the conversation; those who hear them are told elsewhere."""
    return page.locator("main").get_by_text(words)
