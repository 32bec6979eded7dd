"""PEC's Table 7 and 8: every ranker's time and memory against the bi-encoder's, on the same 100 candidates.

    python benchmarks/ranker_speed.py

What candidates need is kept beforehand, as a server would: measured is what a new context costs, that is its
states, its persona's and the matching. Time: contexts are given to all rankers in turn, so that a noisy
moment hits all alike; the median over contexts counts. Memory: a process each; its peak above what it had
after the imports, so that Python and torch make no two rankers look alike. Weights are not trained: neither
figure depends on them.
"""

import argparse
import json
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from statistics import median

from listenwell.dialogue import Dialogue
from listenwell.files import written_whole
from listenwell.results.store import environment

OUT = Path(__file__).parent / "results" / "ranker_speed.json"
CANDIDATES, CORPUS = 100, "synthetic_persona_chat"
SYSTEMS: dict[str, dict[str, object]] = {
    "Bi-encoder": {"model": "bi"},
    "Poly-encoder": {"model": "poly"},
    "BERT+MemNet": {"model": "memnet"},
    "BERT+DAM": {"model": "dam"},
    "DIM": {"model": "dim", "backbone": "words"},
    "BERT+DIM": {"model": "dim"},
    "CoBERT": {"model": "cobert"},
    "CoBERT − hop-1": {"model": "cobert", "cobert": {"hops": [2]}},
    "CoBERT − hop-2": {"model": "cobert", "cobert": {"hops": [1]}},
    "CoBERT + hop-3": {"model": "cobert", "cobert": {"hops": [1, 2, 3]}},
    "CoBERT, mean for max": {"model": "cobert", "cobert": {"pooling": "mean"}},
    "CoBERT, max and mean": {"model": "cobert", "cobert": {"pooling": "both"}},
    "Cross-encoder": {"model": "cross"},
}
PERSONA = (0, 1, 2, 5, 10, 20)


class Measured:
    """A ranker with its candidates kept."""

    def __init__(self, settings: dict[str, object]) -> None:
        from listenwell.corpora.sources import Source
        from listenwell.rankers.config import RankerConfig
        from listenwell.rankers.inference import states_of
        from listenwell.rankers.inputs import Inputs
        from listenwell.rankers.model import make_ranker
        from listenwell.runtime.text import Vocabulary

        config = RankerConfig.from_dict(settings)
        ranker, folder = make_ranker(config)
        self.ranker = ranker.eval()
        self.inputs = Inputs(Vocabulary.from_folder(folder), config)
        replies = [item.reply.text for item in islice(Source(CORPUS).examples("test"), CANDIDATES)]
        self.replies = self.ranker.kept(states_of(self.ranker, self.inputs.replies(replies)))

    def answer(self, context: "Dialogue") -> float:
        """Rank the candidates for one context; returns the seconds it took."""
        from listenwell.rankers.inference import match, states_of

        begin = time.perf_counter()
        texts = self.inputs.personas([context])
        persona = states_of(self.ranker, texts) if len(texts[0]) else None
        match(self.ranker, states_of(self.ranker, self.inputs.contexts([context])), persona, self.replies)
        return time.perf_counter() - begin


def contexts(count: int, sentences: int | None = None) -> "list[Dialogue]":
    """Contexts of six turns; with a number, personas are filled up to it with other people's sentences."""
    from dataclasses import replace

    from listenwell.corpora.sources import Source
    from listenwell.dialogue import Persona

    examples = [
        item for item in islice(Source(CORPUS).examples("test"), 40 * count) if len(item.context.turns) >= 6
    ]
    chosen = [item.context for item in examples[:: max(1, len(examples) // count)]][:count]
    if sentences is None:
        return chosen
    lines = list(dict.fromkeys(line for item in examples for p in item.context.personas for line in p.lines))
    filled = []
    for context in chosen:
        own = context.persona_of(context.listener)
        kept = tuple(dict.fromkeys((*(own.lines if own else ()), *lines)))[:sentences]
        others = tuple(p for p in context.personas if p.speaker != context.listener)
        filled.append(
            replace(context, personas=(*others, *([Persona(context.listener, kept)] if kept else ())))
        )
    return filled


def times(systems: dict[str, dict[str, object]], asked: "dict[str, list[Dialogue]]") -> dict[str, float]:
    """Median seconds a context, the rankers asked in turn."""
    measured = {name: Measured(settings) for name, settings in systems.items()}
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for name, ranker in measured.items():
        ranker.answer(asked[name][0])  # the first call makes room
    for number in range(len(next(iter(asked.values())))):
        for name, ranker in measured.items():
            taken[name].append(ranker.answer(asked[name][number]))
    return {name: median(seconds) for name, seconds in taken.items()}


def memory(settings: dict[str, object], sentences: int | None, count: int) -> float:
    """Megabytes at the peak above what the imports took, in a process of its own."""
    given = json.dumps({"settings": settings, "sentences": sentences, "count": count})
    found = subprocess.run(
        [sys.executable, __file__, "--one", given], capture_output=True, text=True, check=True
    )
    return float(found.stdout)


def table_of(seconds: dict[str, float], peaks: dict[str, float], against: str) -> dict[str, dict[str, float]]:
    """A row each: time and memory, and how many times those of one of them."""
    return {
        name: {
            "milliseconds": round(1000 * seconds[name], 2),
            "time_ratio": round(seconds[name] / seconds[against], 3),
            "megabytes": round(peaks[name], 1),
            "memory_ratio": round(peaks[name] / peaks[against], 3),
        }
        for name in seconds
    }


def _one(given: dict[str, object]) -> None:
    """In the process of its own: print the peak in MB above the imports."""
    import torch
    import transformers  # noqa: F401
    from transformers import BertModel  # noqa: F401

    import listenwell.rankers.model  # noqa: F401

    torch.set_num_threads(1)
    before = _peak()
    ranker = Measured(given["settings"])  # type: ignore[arg-type]
    for context in contexts(int(given["count"]), given["sentences"]):  # type: ignore[call-overload,arg-type]
        ranker.answer(context)
    print((_peak() - before) / 1024)


def _peak() -> int:
    """Kilobytes at the peak; what getrusage says begins with the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="contexts")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        return _one(json.loads(chosen.one))
    asked = contexts(chosen.count)
    seconds = times(SYSTEMS, dict.fromkeys(SYSTEMS, asked))
    peaks = {name: memory(settings, None, 5) for name, settings in SYSTEMS.items()}
    rows = table_of(seconds, peaks, "Bi-encoder")
    by_persona = {str(n): {"model": "cobert", "persona": n, "persona_tokens": 448} for n in PERSONA}
    seconds = times(by_persona, {str(n): contexts(chosen.count, n) for n in PERSONA})
    peaks = {str(n): memory(by_persona[str(n)], n, 5) for n in PERSONA}
    sentences = table_of(seconds, peaks, "0")
    result = {
        "candidates": CANDIDATES,
        "contexts": chosen.count,
        "corpus": f"{CORPUS} test, contexts of six turns with their personas",
        "rankers": rows,
        "persona_sentences": sentences,
        **environment(),
    }
    with written_whole(OUT) as out:
        out.write((json.dumps(result, ensure_ascii=False, indent=1) + "\n").encode())
    for table in (rows, sentences):
        for name, row in table.items():
            time_said = f"{row['milliseconds']:8.1f} ms {row['time_ratio']:6.2f}x"
            print(f"{name:24s} {time_said} {row['megabytes']:8.1f} MB {row['memory_ratio']:6.2f}x")


if __name__ == "__main__":
    main()
