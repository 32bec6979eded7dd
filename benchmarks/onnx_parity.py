"""The annotators and the shipped ranker without torch: do they say what they say with it?

    python benchmarks/onnx_parity.py

Annotators: utterances of EmpatheticDialogues valid, each read by every head as it reads it in use (alone,
with all turns before it, or with the post it answers); how often the label that a user sees is the same. A
head that can give several labels must give the very same ones. Ranker: contexts of valid with the true reply
among 100; how often the same one is put first. Seconds are of the processor, in this run: they compare
engines, not machines.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from listenwell.annotators.annotator import SHIPPED as CLASSIFIER
from listenwell.annotators.config import probabilities
from listenwell.annotators.heads import CONTEXT, GIVEN_FROM, HEADS, REPLY, UTTERANCE
from listenwell.annotators.inference import ClassifierBackend, classify, load_onnx_classifier
from listenwell.annotators.model import load_classifier
from listenwell.annotators.views import View, context_view, encode_views
from listenwell.corpora import CORPORA
from listenwell.dialogue import Dialogue
from listenwell.files import cache_folder, written_whole
from listenwell.labels import LEVELS
from listenwell.rankers.ranker import SHIPPED as RANKER
from listenwell.rankers.scorer import RankerScorer
from listenwell.rankers.scoring import POOL, Pools
from listenwell.results.store import environment
from listenwell.runtime.onnx.graph import PRECISIONS, WEIGHTS
from listenwell.runtime.text import Vocabulary

OUT = Path(__file__).parent / "results" / "onnx_parity.json"
CORPUS, SPLIT = "empathetic_dialogues", "valid"


def views(count: int) -> dict[str, list[View]]:
    """So many views of each kind, from the first dialogues that have them."""

    def dialogues() -> Any:  # noqa: ANN401
        return (item for item in CORPORA.load(CORPUS)().read(SPLIT) if isinstance(item, Dialogue))

    def replies(dialogue: Dialogue) -> list[View]:
        pairs = zip(dialogue.turns, dialogue.turns[1:], strict=False)
        return [
            ((post.text, False), (turn.text, True))
            for post, turn in pairs
            if turn.speaker == dialogue.listener
        ]

    ways: dict[str, Callable[[Dialogue], list[View]]] = {
        UTTERANCE: lambda dialogue: [((turn.text, False),) for turn in dialogue.turns],
        CONTEXT: lambda dialogue: [
            context_view(dialogue, index + 1)
            for index, turn in enumerate(dialogue.turns)
            if turn.speaker != dialogue.listener
        ],
        REPLY: replies,
    }
    return {
        kind: list(islice((view for dialogue in dialogues() for view in way(dialogue)), count))
        for kind, way in ways.items()
    }


def shown(probabilities_: np.ndarray, head: str) -> np.ndarray:
    """What a user sees of each text: the label's number, or a row of those given; (texts, …)."""
    if HEADS[head].several:
        return np.asarray(probabilities_ > GIVEN_FROM)
    if HEADS[head].labels is LEVELS:  # "no" against weak and strong together, as `turn_factors.level_of`
        return np.where(probabilities_[:, 0] >= 0.5, 0, 1 + probabilities_[:, 1:].argmax(axis=1))[:, None]
    return np.asarray(probabilities_.argmax(axis=1)[:, None])


def labels(
    classifier: ClassifierBackend, vocabulary: Vocabulary, views_by_kind: dict[str, list[View]]
) -> tuple[dict[str, Any], float]:
    """By head what is shown of its views, and the seconds that the encoder took."""
    found, seconds = {}, 0.0
    for kind, texts in views_by_kind.items():
        inputs = encode_views(vocabulary, texts, classifier.config.limit)
        begin = time.process_time()
        heard = classify(classifier, inputs)
        seconds += time.process_time() - begin
        for head in (name for name in classifier.config.heads if HEADS[name].view == kind):
            probabilities_ = probabilities(heard.logits(head), head, classifier.config.temperature(head))
            found[head] = shown(probabilities_, head)
            if HEADS[head].several:
                found[f"{head}, the likeliest"] = probabilities_.argmax(axis=1)[:, None]
    return found, seconds


def first_choices(scorer: RankerScorer, blocks: Sequence[Any]) -> tuple[np.ndarray, float]:
    """The number of the best reply for each context, and the seconds that took."""
    begin = time.process_time()
    scores = [
        scorer.score([item.context for item in block], [item.reply.text for item in block])
        for block in blocks
    ]
    return np.concatenate([block.argmax(axis=1) for block in scores]), time.process_time() - begin


def equal(found: np.ndarray, wanted: np.ndarray) -> float:
    """The share of rows that are the same."""
    return round(float((found == wanted).reshape(len(wanted), -1).all(axis=1).mean()), 4)


def megabytes(precision: str) -> float:
    """Of an encoder's weights in the cache."""
    files = (cache_folder() / "graphs").glob(f"*-{precision}-*/{WEIGHTS}")
    return round(max(file.stat().st_size for file in files) / 1e6, 1)


def measure(utterances: int, pools: int) -> dict[str, Any]:
    """Everything, both engines beside each other."""
    views_by_kind = views(utterances)
    blocks = list(Pools(CORPUS, SPLIT, most=-(-pools // POOL)).blocks())
    wanted, seconds = labels(*load_classifier(CLASSIFIER), views_by_kind)
    best, spent = first_choices(RankerScorer.load(RANKER), blocks)
    result: dict[str, Any] = {
        "corpus": f"{CORPUS} {SPLIT}",
        "utterances": {kind: len(texts) for kind, texts in views_by_kind.items()},
        "pools": len(best),
        "candidates": POOL,
        "torch": {"annotator_cpu_s": round(seconds, 2), "ranker_cpu_s": round(spent, 2)},
    }
    for precision in PRECISIONS:
        found, seconds = labels(*load_onnx_classifier(CLASSIFIER, precision=precision), views_by_kind)
        chosen, spent = first_choices(RankerScorer.load(RANKER, engine="onnx", precision=precision), blocks)
        same = {head: equal(found[head], rows) for head, rows in wanted.items()}
        result[f"onnx {precision}"] = {
            "labels_equal": same,
            "least_equal": min(value for head, value in same.items() if head in HEADS),
            "first_choice_equal": equal(chosen, best),
            "annotator_cpu_s": round(seconds, 2),
            "ranker_cpu_s": round(spent, 2),
            "graph_mb": megabytes(precision),
        }
    return result


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--utterances", type=int, default=1000, help="of each head's views")
    parser.add_argument("--pools", type=int, default=500, help="in hundreds")
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args()
    about = {name: value for name, value in environment().items() if name != "command"}
    figures = measure(chosen.utterances, chosen.pools)
    with written_whole(chosen.out) as file:
        file.write((json.dumps({**figures, **about}, ensure_ascii=False, indent=1) + "\n").encode())
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
