"""A reply from an empty home: what it leaves on the disk lies in our cache folder, all of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECIPE = "system: Listen.\nshots: []\nprompt_tokens: 128\ndecoding: {max_tokens: 6}\n"
PROGRAM = """
import json, os, sys

written = set()

def note(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        written.add(os.path.abspath(arguments[0]))
    elif event in ("os.mkdir", "os.rename", "os.link", "os.symlink"):
        written.update(os.path.abspath(path) for path in arguments[:2] if not isinstance(path, int))

sys.addaudithook(note)
assert "onnxruntime" not in sys.modules
from listenwell.cli import app
app(sys.argv[1:], standalone_mode=False)
print(json.dumps({
    "telemetry": os.environ.get("ORT_DISABLE_TELEMETRY"),
    "engines": sorted({"onnxruntime", "torch"} & set(sys.modules)),
    "written": sorted(written),
}))
"""
TELEMETRY = {".ses", "deviceid", "onnxruntime.db"}
"""What onnxruntime leaves in the home and in the folder for passing files unless it is told not to."""


def files(folder):
    return {path for path in folder.rglob("*") if not path.is_dir()}


def test_a_reply_leaves_nothing_outside_our_cache_folder(tiny_llama, tmp_path):
    home = tmp_path / "home"
    names = ("cache", "config", "data", "state", "runtime", "tmp", "work")
    folders = {name: home / name for name in names}
    for folder in folders.values():
        folder.mkdir(parents=True)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE)
    before = files(tmp_path) | files(tiny_llama)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",  # Python's own files beside our source
        "HF_HUB_OFFLINE": "1",
        "HOME": str(home),
        "TMPDIR": str(folders["tmp"]),
        "XDG_CACHE_HOME": str(folders["cache"]),
        "XDG_CONFIG_HOME": str(folders["config"]),
        "XDG_DATA_HOME": str(folders["data"]),
        "XDG_STATE_HOME": str(folders["state"]),
        "XDG_RUNTIME_DIR": str(folders["runtime"]),
    }
    options = ["--model", "prompted", "--seed", "1", "--weights", str(tiny_llama), "--recipe", str(recipe)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "reply", "I am so sad.", *options],
        env=environment,
        cwd=folders["work"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    said, report = done.stdout.rsplit("\n", 2)[:2]
    noted, ours = json.loads(report), folders["cache"] / "listenwell"
    assert said.strip()
    assert (noted["telemetry"], noted["engines"]) == ("1", ["onnxruntime"])
    left = (files(tmp_path) | files(tiny_llama)) - before
    assert any(path.name == "model.onnx" for path in left)
    assert [path for path in left if not path.is_relative_to(ours)] == []
    assert [path for path in left if path.name in TELEMETRY] == []
    assert [path for path in noted["written"] if not Path(path).is_relative_to(ours)] == []
