"""The engine without torch beside transformers in fp32: as fast as promised, and the same replies?

    python benchmarks/engine_speed.py

Speed: each engine in a process of its own, in turn, for several rounds; the median of the rounds' ratios
counts, because machines are noisy. A round makes 40 tokens from a prompt of 37, alone and as four candidates;
what the first token takes is taken off, so that only decoding is left. Peak memory and seconds to import and
load are the process's own.

Parity, on EmpatheticDialogues test: logits in fp32 against torch's; in int8 the share of positions where
the greedy reply in fp32 would go on with the same token, and the perplexity of people's replies. Encoders:
`onnx_parity.py`.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from listenwell.corpora import CORPORA
from listenwell.dialogue import Example
from listenwell.files import written_whole
from listenwell.generators.prompt_template import END, build_prompt
from listenwell.results.store import environment
from listenwell.runtime.weights import find_weights

OUT = Path(__file__).parent / "results" / "engine_speed.json"
MODEL, ENCODER, CORPUS = "smollm2-135m-instruct", "all-minilm-l6-v2", "empathetic_dialogues"
ENGINES = ("transformers fp32", "onnxruntime fp32", "onnxruntime int8")
PROMPT, NEW, ROWS, POOL = 37, 40, 4, 100
TALK = """I finally got the job I wanted, after so many interviews that came to nothing. They called me this
morning. I could not stop shaking, I was so happy to hear it."""


def maker(engine: str) -> tuple[Callable[[str], list[int]], Callable[[list[int], int, int], None]]:
    """How an engine encodes, and how it makes so many tokens in so many rows."""
    folder = find_weights(MODEL)
    if engine.startswith("transformers"):
        import torch
        from transformers import AutoModelForCausalLM

        from listenwell.runtime.quiet import quiet_transformers
        from listenwell.runtime.text import Vocabulary

        with quiet_transformers():
            model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

        def generate(prompt: list[int], new: int, rows: int) -> None:
            with torch.inference_mode():
                model.generate(
                    torch.tensor([prompt] * rows),
                    attention_mask=torch.ones(rows, len(prompt), dtype=torch.long),
                    do_sample=False,
                    min_new_tokens=new,
                    max_new_tokens=new,
                    pad_token_id=0,
                )

        return Vocabulary.from_folder(folder).encode, generate
    from listenwell.runtime.onnx.engine import OnnxRuntime

    runtime = OnnxRuntime.load(folder, precision=engine.rsplit(maxsplit=1)[-1])

    def decode(prompt: list[int], new: int, rows: int) -> None:
        state = runtime.prefill(prompt)
        if rows > 1:
            state = runtime.pick(state, [0] * rows)
        for _ in range(new - 1):
            state = runtime.step(state, runtime.likeliest(state, 1).tokens.tolist())

    return runtime.encode, decode


def one(engine: str) -> None:
    """In a process of its own: load, decode, print the figures."""
    begin = time.perf_counter()
    encode, make = maker(engine)
    loaded = time.perf_counter() - begin
    prompt = encode(TALK)[:PROMPT]
    assert len(prompt) == PROMPT
    make(prompt, 2, 1)  # warm up
    rates = {}
    for name, rows in (("decode", 1), ("four", ROWS)):
        times = []
        for new in (1, NEW):
            begin = time.perf_counter()
            make(prompt, new, rows)
            times.append(time.perf_counter() - begin)
        rates[name] = rows * (NEW - 1) / (times[1] - times[0])
    status = Path("/proc/self/status").read_text()
    peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
    print(json.dumps({**rates, "load_seconds": loaded, "peak_mb": peak}))


def speed(rounds: int) -> dict[str, Any]:
    """Figures of every engine, and ratios to the first, the engines in turn."""
    find_weights(MODEL)
    for precision in ("fp32", "int8"):  # built before anything is timed
        _onnx(precision)
    found: list[dict[str, dict[str, float]]] = []
    for _ in range(rounds):
        row = {}
        for engine in ENGINES:
            command = [sys.executable, __file__, "--one", engine]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            row[engine] = json.loads(said)
        found.append(row)
    plain = ENGINES[0]
    figures = {
        engine: {name: round(median(row[engine][name] for row in found), 2) for name in found[0][engine]}
        for engine in ENGINES
    }
    ratios = {
        engine: {
            name: round(median(row[engine][name] / row[plain][name] for row in found), 2)
            for name in ("decode", "four")
        }
        for engine in ENGINES[1:]
    }
    return {"tokens_a_second": figures, "times_as_fast_as_transformers": ratios}


def examples(count: int) -> Iterator[Example]:
    """Replies of the test split, spread over it."""
    return islice(islice(CORPORA.load(CORPUS)().examples("test"), 0, None, 10), count)


def llama_parity(positions: int, replies: int) -> dict[str, Any]:
    """The speaker's base model: exact, rounded, and torch's."""
    from listenwell.runtime.torch_engine import TorchRuntime

    reference = TorchRuntime.from_folder(find_weights(MODEL))
    exact, rounded = _onnx("fp32"), _onnx("int8")
    stop = exact.vocabulary.special(END)
    difference, same, seen = 0.0, 0, 0
    for example in examples(positions):
        tokens = list(build_prompt(exact.vocabulary, example.context, "", 1024).tokens)
        states = [exact.prefill(tokens), rounded.prefill(tokens)]
        for _ in range(30):
            wanted, near = exact.logits(states[0])[0], rounded.logits(states[1])[0]
            token = int(wanted.argmax())
            same, seen = same + int(near.argmax() == token), seen + 1
            if token == stop or seen == positions:
                break
            tokens.append(token)
            states = [exact.step(states[0], [[token]]), rounded.step(states[1], [[token]])]
        # Torch reads prompt and reply at once: the difference of one long reading and many short ones too.
        plain = reference.logits(reference.prefill(tokens))[0]
        difference = max(difference, float(np.abs(plain - exact.logits(states[0])[0]).max()))
        if seen == positions:
            break
    nats, count = dict.fromkeys(("fp32", "int8"), 0.0), 0
    for example in examples(replies):
        prompt = build_prompt(exact.vocabulary, example.context, "", 1024).tokens
        reply = [[*exact.encode(example.reply.text), stop]]
        for name, engine in (("fp32", exact), ("int8", rounded)):
            nats[name] -= float(engine.log_likelihoods(prompt, reply)[0])
        count += len(reply[0])
    perplexity = {name: float(np.exp(value / count)) for name, value in nats.items()}
    return {
        "fp32_largest_difference": difference,
        "positions": seen,
        "int8_greedy_agreement": round(same / seen, 4),
        "replies": replies,
        "perplexity": {name: round(value, 4) for name, value in perplexity.items()},
        "perplexity_ratio": round(perplexity["int8"] / perplexity["fp32"], 5),
    }


def _onnx(precision: str) -> Any:  # noqa: ANN401
    from listenwell.runtime.onnx.engine import OnnxRuntime

    return OnnxRuntime.load(find_weights(MODEL), precision=precision)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--positions", type=int, default=1000, help="of greedy replies")
    parser.add_argument("--replies", type=int, default=500, help="whose perplexity is measured")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--one", choices=ENGINES, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        return one(chosen.one)
    result = {
        "model": MODEL,
        "prompt_tokens": PROMPT,
        "new_tokens": NEW,
        "rounds": chosen.rounds,
        "speed": speed(chosen.rounds),
        "parity": llama_parity(chosen.positions, chosen.replies),
    }
    print(json.dumps(result, indent=1))
    with written_whole(chosen.out) as out:
        out.write((json.dumps({**result, **environment()}, ensure_ascii=False, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
