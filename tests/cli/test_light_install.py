"""Who only wants to talk needs no training framework."""

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


def call(*arguments, given=None):
    return subprocess.run(
        [sys.executable, "-c", BLOCK, *arguments],
        capture_output=True,
        text=True,
        input=given,
        check=False,
        timeout=110,
    )


def test_a_reply_without_torch(tiny_llama, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text("system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 6}")
    made = call(
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
    assert made.returncode == 0, made.stderr
    assert made.stdout.strip()


def test_a_planned_talk_without_torch(tiny_generator):
    made = call(
        *("chat", "--model", "planned", "--weights", str(tiny_generator), "--seed", "1"),
        *("--without", "understand", "--without", "rerank"),
        given="I am sad\n",
    )
    assert made.returncode == 0, made.stderr
    assert len(made.stdout.splitlines()) == 1


def test_what_needs_more_says_so():
    made = call("train", "recipes/vanilla.yaml")
    assert made.returncode == 1
    assert "pip install 'listenwell[train]'" in made.stderr and "Traceback" not in made.stderr
