"""Screenshots for the docs, of a service that runs: python -m tests.serving.page.figures ADDRESS FOLDER.

It should offer a model that plans first, such as `listenwell serve --model planned --model prompted`.
"""

import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from tests.serving.page.conftest import CHROMIUM, FLAGS
from tests.serving.page.steps import replies, say, unfold

WIDE, PHONE = {"width": 1180, "height": 1000}, {"width": 390, "height": 780}
FIRST = "I finally got promoted today, after two years of evening classes!"
SECOND = "My mum was so proud that she cried."
PATIENCE = 120_000
"""Milliseconds for a reply."""


def answered(page, text, count):
    say(page, text)
    expect(replies(page)).to_have_count(count, timeout=PATIENCE)


def light(page):
    answered(page, FIRST, 1)
    unfold(page, "Plan of the reply")
    page.get_by_role("button", name="acknowledging").click()
    expect(replies(page)).to_have_count(2, timeout=PATIENCE)


def dark(page):
    answered(page, FIRST, 1)
    answered(page, SECOND, 2)
    unfold(page, "Detected emotion")
    unfold(page, "Other candidates")


def phone(page):
    answered(page, FIRST, 1)
    unfold(page, "Detected emotion")
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")


def main(address, folder):
    figures = (("light", light, WIDE), ("dark", dark, WIDE), ("phone", phone, PHONE))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for name, steps, size in figures:
            page = browser.new_page(viewport=size, color_scheme="dark" if name == "dark" else "light")
            page.goto(address)
            page.wait_for_selector("html[data-ready]")
            steps(page)
            page.wait_for_timeout(500)  # the list of conversations
            page.screenshot(path=folder / f"page-{name}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
