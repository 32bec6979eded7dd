"""Replies need no training framework."""

import subprocess
import sys

BLOCK = """
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "peft", "accelerate"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
sys.argv = ["listenwell", *sys.argv[1:]]
from listenwell.cli import main
main()
"""


def call(*arguments, stdin=None):
    return subprocess.run(
        [sys.executable, "-c", BLOCK, *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        check=False,
        timeout=110,
    )


def test_a_reply_without_torch(tiny_llama, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text("system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 6}")
    done = call(
        "reply",
        "I am sad",
        "--model",
        "prompted",
        "--weights",
        str(tiny_llama),
        "--recipe",
        str(recipe),
        "--seed",
        "1",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_a_planned_talk_without_torch(tiny_generator):
    done = call(
        *("chat", "--model", "planned", "--weights", str(tiny_generator), "--seed", "1"),
        *("--without", "understand", "--without", "rerank"),
        stdin="I am sad\n",
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_what_needs_more_says_so():
    done = call("train", "recipes/vanilla.yaml")
    assert done.returncode == 1
    assert "pip install 'listenwell[train]'" in done.stderr and "Traceback" not in done.stderr
