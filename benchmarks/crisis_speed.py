"""How long crisis detection takes for a message: patterns alone, and patterns with the classifier.

    python benchmarks/crisis_speed.py

Messages are the speakers' turns of EmpatheticDialogues valid, each with the turns before it, one at a time.
Both ways alternate message by message in one run, so that other work of the machine slows both.
"""

import argparse
import json
import statistics
import time
from itertools import islice
from pathlib import Path

from listenwell.annotators.views import View
from listenwell.corpora import load_corpus
from listenwell.files import written_whole
from listenwell.results.store import environment
from listenwell.safety.classifier import NONE, CrisisClassifier, Risk
from listenwell.safety.crisis import Detector

OUT = Path(__file__).parent / "results" / "crisis_speed.json"


class NoClassifier(CrisisClassifier):
    """Finds nothing, so that the patterns' time is left."""

    def __init__(self) -> None:
        pass

    def predict(self, view: View) -> Risk:
        """No risk."""
        return Risk(NONE, "suicide", 0.0, 0.0)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    contexts = list(
        islice(
            (
                example.context
                for dialogue in load_corpus("empathetic_dialogues", "valid")
                for example in dialogue.examples()
            ),
            options.messages,
        )
    )
    ways = {"patterns": Detector(NoClassifier()), "patterns and classifier": Detector.load()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for detector in ways.values():
        detector.assess(contexts[0])  # compiles its expressions and starts its threads
    for context in contexts:
        for name, detector in ways.items():
            begin = time.perf_counter()
            detector.assess(context)
            seconds[name].append(time.perf_counter() - begin)
    medians = {name: round(1000 * statistics.median(own), 2) for name, own in seconds.items()}
    result = {
        "messages": len(contexts),
        "corpus": "empathetic_dialogues valid",
        "median milliseconds": medians,
        "added milliseconds": round(medians["patterns and classifier"] - medians["patterns"], 2),
        **environment(),
    }
    with written_whole(options.out) as out:
        out.write((json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
