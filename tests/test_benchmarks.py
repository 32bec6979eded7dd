"""The benchmarks of the runtime, and the script that measures an environment, on tiny models."""

import itertools
import json
import re
import sys
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path

import pytest

from listenwell.dialogue import LISTENER, SPEAKER, Candidate, Reply
from listenwell.runtime.weights import BASE_MODELS

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

import growth  # noqa: E402
import installed_size  # noqa: E402
import llama_cpp_speed  # noqa: E402
import reply_speed  # noqa: E402

PLACES = ["understand", "plan", "generate", "rerank", "guard"]


@pytest.fixture
def planned(tiny_generator, weights_cache, monkeypatch):
    """Options that name the tiny generator; the encoders beside it are the real ones, built once a run."""
    monkeypatch.setenv("LISTENWELL_CACHE", str(weights_cache))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return ["--model", "planned", "--weights", str(tiny_generator)]


def run(script, monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *options])
    script.main()


def test_a_talk_ends_with_the_other_person():
    turns = reply_speed.dialogue_of(["a", "b", "c"]).turns
    assert [(turn.speaker, turn.text) for turn in turns] == [(SPEAKER, "a"), (LISTENER, "b"), (SPEAKER, "c")]
    assert [turn.speaker for turn in reply_speed.dialogue_of(["a", "b"]).turns] == [LISTENER, SPEAKER]


def test_what_is_not_named_is_left_to_the_listener():
    assert reply_speed.settings(Namespace(model=None, weights=None)) == {}
    asked = reply_speed.command(Namespace(model="planned", weights=Path("a b")), "-X", "importtime")
    assert asked[1:3] == ["-X", "importtime"]
    assert asked[-4:] == ["--model", "planned", "--weights", "a b"]


def test_a_full_reply_is_measured_in_time_and_memory(planned, tmp_path, monkeypatch, capfd):
    out = tmp_path / "reply.json"
    run(
        reply_speed,
        monkeypatch,
        *planned,
        *["--rounds", "1", "--dialogues", "2", "--starts", "1", "--out"],
        str(out),
    )
    result = json.loads(out.read_text())
    assert result["model"].startswith("planned")
    assert result["full_seconds"] > result["one_seconds"] > 0
    assert result["times_one_candidate"] > 1
    assert sorted(result["share"]) == sorted(PLACES)
    assert sum(result["share"].values()) == pytest.approx(1, abs=0.01)
    assert 100 < result["peak_mb"] < 2500  # onnxruntime and three encoders, whose graphs are built here
    assert 100 < result["peak_mb_after_a_long_talk"] < 4000
    assert 0.1 < result["first_word_seconds"] < 60
    assert result["stages_seconds"]["load"] > 0 and result["stages_seconds"]["first reply"] > 0
    assert {"listenwell", "numpy", "all"} <= set(result["imports_seconds"])
    assert "torch" not in result["imports_seconds"]
    assert {"versions", "commit", "machine"} <= set(result) and "command" not in result
    shown = capfd.readouterr().out
    for name, most in reply_speed.AIMS.items():
        side = "within" if result[name] <= most else "over"
        assert f"{name}: {result[name]}, {side} {most}" in shown


def test_a_start_that_fails_is_no_figure(capfd):
    with pytest.raises(SystemExit, match="ended with 3"):
        reply_speed.start([sys.executable, "-c", "print('a word', flush=True); raise SystemExit(3)"])


def test_memory_and_first_letter_are_the_childs_own():
    late = "import time; x = b'1' * 200_000_000; print('a', flush=True)"
    seconds, megabytes = reply_speed.start([sys.executable, "-c", late])
    assert seconds > 0
    assert megabytes > 190


def reply(seconds, notices=()):
    timings = dict(zip(PLACES, map(float, seconds), strict=True), total=float(sum(seconds)))
    return Reply("a", "m", 1, candidates=(Candidate("a"),), notices=notices, timings=tuple(timings.items()))


def test_rows_are_medians():
    replies = [reply((0.1, 1, 2, 3, 4)), reply((0.3, 1, 1, 1, 1)), reply((0.2, 5, 5, 5, 5))]
    assert growth.row("turns", 7, replies) == {
        "turns": 7,
        "seconds": 10.1,  # of 10.1, 4.3 and 20.2
        "stages": {"understand": 0.2, "plan": 1, "generate": 2, "rerank": 3, "guard": 4},
        "turns_left_out": False,
    }
    cut = [reply((0, 0, 0, 0, 0), ("The talk is long: the 3 oldest turns were left out.",))]
    assert growth.row("turns", 7, cut)["turns_left_out"] is True


def test_a_talk_has_as_many_turns_as_asked():
    assert [len(reply_speed.dialogue(turns).turns) for turns in growth.TURNS] == list(growth.TURNS)
    assert reply_speed.dialogue(50).turns[-1].speaker == SPEAKER
    assert reply_speed.dialogue(3).turns[-1].text == reply_speed.dialogue(2, first=1).turns[-1].text


def test_growth_is_measured_and_drawn(planned, tmp_path, monkeypatch):
    numbers = ["--turns", "1", "60", "--candidates", "1", "2", "--rounds", "1"]
    files = ["--out", str(tmp_path / "growth.json"), "--figures", str(tmp_path)]
    run(growth, monkeypatch, *planned, *numbers, *files)
    result = json.loads((tmp_path / "growth.json").read_text())
    assert [(row["turns"], row["turns_left_out"]) for row in result["turns"]] == [(1, False), (60, True)]
    assert [row["candidates"] for row in result["candidates"]] == [1, 2]
    one, two = (row["stages"] for row in result["candidates"])
    assert one["rerank"] < two["rerank"]  # of one reply there is nothing to choose
    first = (tmp_path / "growth.svg").read_bytes()
    growth.draw(result, tmp_path)
    assert (tmp_path / "growth.svg").read_bytes() == first
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_llama_cpp_is_only_compared_where_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(llama_cpp_speed, "version", lambda python: None)
    run(llama_cpp_speed, monkeypatch, "--out", str(tmp_path / "out.json"))
    assert "pip install llama-cpp-python" in capsys.readouterr().out
    assert not (tmp_path / "out.json").exists()


def test_a_python_without_llama_cpp_has_no_version(tmp_path):
    is_there = find_spec("llama_cpp") is not None
    assert (llama_cpp_speed.version(sys.executable) is not None) == is_there
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    assert llama_cpp_speed.version(str(tmp_path / "python")) is None


def test_the_first_token_and_all_after_it_are_kept(monkeypatch):
    asked = {"engine": "int8", "weights": "", "adapter": "", "prompts": [[7], [9]], "threads": 1}
    monkeypatch.setattr(llama_cpp_speed, "ours", lambda *given: lambda prompt: itertools.count(prompt[0]))
    found = llama_cpp_speed.one(asked)
    assert found["tokens"] == [list(range(7, 7 + 40)), list(range(9, 9 + 40))]
    assert found["tokens_a_second"] > 1000


def test_our_engine_goes_on_greedily(tiny_llama):
    from listenwell.runtime.onnx.engine import OnnxRuntime

    runtime, tokens = OnnxRuntime.load(tiny_llama, precision="fp32"), [5, 9, 40, 7]
    found = list(itertools.islice(llama_cpp_speed.ours(str(tiny_llama), "", "fp32")(tokens), 8))
    for token in found:
        assert token == int(runtime.logits(runtime.prefill(tokens))[0].argmax())
        tokens.append(token)


def test_ratios_to_llama_cpp_are_medians_of_rounds(monkeypatch):
    speeds = {"int8": iter([9, 10, 20, 30]), "fp32": iter([5] * 4), "llama.cpp": iter([10, 10, 20])}
    tokens = {"int8": [[1, 2, 3, 4]], "fp32": [[1, 2, 3, 4]], "llama.cpp": [[1, 2, 9, 4]]}
    asked_of = []

    def apart(python, task, asked):
        asked_of.append((python, asked["engine"]))
        return {"tokens_a_second": next(speeds[asked["engine"]]), "tokens": tokens[asked["engine"]]}

    monkeypatch.setattr(llama_cpp_speed, "apart", apart)
    engines = {name: {"engine": name} for name in ("int8", "fp32")}
    engines["llama.cpp Q4_1"] = {"engine": "llama.cpp"}
    result = llama_cpp_speed.compared(engines, [[1, 2]], "other", 3)
    # What ours takes the first time is not counted: ratios 10/10, 20/10, 30/20.
    assert result == {
        "prompt_tokens": [2],
        "tokens_a_second": {"int8": 20, "fp32": 5, "llama.cpp Q4_1": 10},
        "int8_times_as_fast_as": {"llama.cpp Q4_1": 1.5},
        "same_as_fp32": {"int8": 1.0, "llama.cpp Q4_1": 0.5},
    }
    assert asked_of[2:5] == [(sys.executable, "int8"), (sys.executable, "fp32"), ("other", "llama.cpp")]


def install(packages, name, files):
    """A package as pip leaves it."""
    info = packages / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    for file, size in files.items():
        (packages / file).parent.mkdir(parents=True, exist_ok=True)
        (packages / file).write_bytes(b"x" * size)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files if "__pycache__" not in file))
    return sum(files.values())


def test_every_file_of_an_environment_is_counted_once(tmp_path):
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    base = next(iter(BASE_MODELS.values())).wheel.split("==")[0]
    install(
        packages,
        "Tool_Box",
        {"box/a.py": 2_000_000, "box/__pycache__/a.cpython-311.pyc": 500_000, "../../../bin/box": 70},
    )
    install(packages, base, {"weights/model.gguf": 9_000_000})
    install(packages, "pip", {"pip/main.py": 1_000_000})
    (packages / "left.txt").write_bytes(b"x" * 300_000)
    (packages / "twice.py").symlink_to(packages / "box" / "a.py")
    found = {one.name: one for one in installed_size.sizes(installed_size.find_packages(tmp_path / "env"))}
    assert list(found) == [base, "tool-box", "pip", installed_size.NOBODY]
    assert found["tool-box"].kind == "runtime" and found[base].kind == "base" and found["pip"].kind == "tools"
    assert found["tool-box"].mb == pytest.approx(2.5)
    assert found["tool-box"].compiled_mb == pytest.approx(0.5)
    notes = sum(file.stat().st_size for file in packages.glob("*.dist-info/*"))
    assert found[installed_size.NOBODY].mb == pytest.approx((300_000 + notes) / 1e6)
    lines = installed_size.table(found.values(), least=0.5).splitlines()
    assert [re.sub(r"\s+", " ", line) for line in lines if "tool-box" in line] == [" tool-box 1.0 2.5 0.5"]
    assert lines[-1].split() == ["In", "all", "12.8", "0.5"]


def test_what_a_plain_install_brings_is_found_without_extras(tmp_path):
    wants = {
        "engine": ["Numbers>=2", "old-name; python_version < '3'"],
        "numbers": ["speed; extra == 'fast'"],
        "server": [],
        "speed": [],
        "trainer": ["numbers"],
    }
    for name, requirements in wants.items():
        install(tmp_path, name, {f"{name}/a.py": 1})
        with (tmp_path / f"{name}-1.0.dist-info" / "METADATA").open("a") as notes:
            notes.writelines(f"Requires-Dist: {line}\n" for line in requirements)
    always = {"listenwell", *installed_size.BASES}
    assert installed_size.needed(tmp_path, ["engine>1", "SERVER"]) - always == {"engine", "numbers", "server"}
    fast = installed_size.needed(tmp_path, ["engine", "numbers[fast]"])
    assert fast - always == {"engine", "numbers", "speed"}


def test_our_own_package_is_counted_where_it_lies_in_its_checkout():
    (ours,) = installed_size.with_ours([])
    assert (ours.name, ours.kind) == ("listenwell", "runtime")
    assert ours.mb > 5  # the shipped adapters and heads
    installed = installed_size.Installed("listenwell", "1.0", "runtime", 12.0, 1.0)
    assert installed_size.with_ours([installed]) == [installed]
    only_a_link = installed_size.Installed("listenwell", "1.0", "runtime", 0.01, 0.0)
    assert installed_size.with_ours([only_a_link]) == [ours]


def test_a_folder_that_is_no_environment_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no environment"):
        installed_size.find_packages(tmp_path)


def test_make_bench_names_benchmarks_that_are_there():
    named = re.findall(r"benchmarks/\w+\.py", (ROOT / "Makefile").read_text())
    assert {f"benchmarks/{name}.py" for name in ("reply_speed", "growth", "llama_cpp_speed")} <= set(named)
    for file in named:
        assert (ROOT / file).is_file(), file
