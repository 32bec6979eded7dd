import subprocess

import pytest

from listenwell.results import store
from listenwell.results.store import environment


def git(monkeypatch, answer):
    def run(command, **options):
        assert command[0] == "git"
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0 if answer else 128, answer, "")

    monkeypatch.setattr(store.subprocess, "run", run)


@pytest.mark.parametrize("answer", ["", FileNotFoundError("git"), subprocess.TimeoutExpired("git", 10)])
def test_the_environment_names_the_commit_where_git_does_not(monkeypatch, answer):
    git(monkeypatch, answer)
    monkeypatch.setenv("LISTENWELL_COMMIT", " 0123abcd-dirty\n")
    assert environment()["commit"] == "0123abcd-dirty"
    monkeypatch.delenv("LISTENWELL_COMMIT")
    assert environment()["commit"] == ""


def test_git_is_believed_first(monkeypatch):
    git(monkeypatch, "fedcba\n")
    monkeypatch.setenv("LISTENWELL_COMMIT", "0123abcd")
    assert environment()["commit"] == "fedcba"
