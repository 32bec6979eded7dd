import re

import pytest

from listenwell.serving.app import STATIC

SCRIPTS = sorted((STATIC / "js").glob("*.js"))


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_a_script_is_short_and_makes_no_markup_of_text(file):
    text = file.read_text()
    assert text.count("\n") <= 400
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\(.style"
    )
    assert not re.search(forbidden, text)
    for name in re.findall(r'from "\./([\w.]+)"', text):
        assert (STATIC / "js" / name).is_file()


def test_the_page_needs_nothing_from_elsewhere_and_no_exception_from_its_policy():
    text = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=| type=\"module\" src=)", text)
    addresses = re.findall(r'(?:href|src)="([^"#]+)"', text)
    assert {one for one in addresses if not one.startswith("/static/")} == {"/docs"}
    assert all((STATIC / one.removeprefix("/static/")).is_file() for one in addresses if "static" in one)
    for sheet in (STATIC / "css").glob("*.css"):
        assert not re.search(r"url\(|@import", sheet.read_text())


def test_no_script_is_left_over():
    used = {name for file in SCRIPTS for name in re.findall(r'from "\./([\w.]+)"', file.read_text())}
    assert used | {"main.js", "early.js"} == {file.name for file in SCRIPTS}
