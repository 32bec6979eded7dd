"""How fast the annotators read, beside a plain transformers pipeline with the same encoder and one head.

Both read the same mixed-length utterances on the same machine, one after the other, in several rounds; the
figure is the median of the rounds' ratios, because machines are noisy. The pipeline answers one question of
each text (act); ours answers the same one, and then every question about single utterances, which costs
nothing more. The pipeline is built for its time alone: it does the same amount of work, but its answers are
noise, because transformers puts a layer before the head (BERT's pooler) that was never trained. Also
measured: the listener's question of one turn, in encoder passes of that turn.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from listenwell.annotators.annotator import SHIPPED, Annotator, find_classifiers
from listenwell.annotators.model import load_classifier
from listenwell.corpora import CORPORA, Item
from listenwell.dialogue import SPEAKER, Dialogue, Turn
from listenwell.labels import ACTS
from listenwell.results.store import environment


def said(item: Item) -> list[str]:
    """The texts of an item."""
    return [turn.text for turn in item.turns] if isinstance(item, Dialogue) else [item.text]


def mixed_texts(count: int) -> list[str]:
    """Utterances, Reddit comments and long posts, in the corpora's own order and thus of every length."""
    dialogues = CORPORA.load("empathetic_dialogues")().read("valid")
    comments = CORPORA.load("goemotions")().read("valid")
    posts = CORPORA.load("epitome")().read("valid")
    texts = [
        *islice((text for item in dialogues for text in said(item)), count // 2),
        *islice((text for item in comments for text in said(item)), count * 3 // 8),
        *islice((text for item in posts for text in said(item)), count // 8),
    ]
    # Spread the sources evenly: a file whose lengths are mixed everywhere.
    return [text for start in range(7) for text in texts[start::7]]


def plain_pipeline(folder: Path, batch_size: int) -> Callable[[list[str]], Any]:
    """The encoder with the act head as an ordinary classification pipeline, in float32 on the CPU.

    To be timed, not believed: the pooler between the two has random weights.
    """
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, pipeline

    from listenwell.runtime.weights import find_weights

    classifier, _ = load_classifier(find_classifiers(folder)[0])
    base = find_weights(classifier.config.base)
    config = BertConfig.from_pretrained(base, num_labels=len(ACTS), id2label=dict(enumerate(ACTS)))
    model = BertForSequenceClassification(config).eval()
    model.bert.load_state_dict(classifier.encoder.state_dict(), strict=False)
    with torch.no_grad():
        model.classifier.weight.copy_(classifier.heads["act"].weight)
        model.classifier.bias.copy_(classifier.heads["act"].bias)
    tokenizer = AutoTokenizer.from_pretrained(base)
    made = pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")
    return lambda texts: made(texts, batch_size=batch_size, truncation=True, max_length=256)


def seconds(work: Callable[[], Any]) -> float:
    """How long something takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Utterances a second of both, and their ratio."""
    texts = mixed_texts(count)
    dialogues = [Dialogue((Turn(SPEAKER, text),)) for text in texts]
    one = Annotator.load(folder, heads=["act"])
    every = Annotator.load(folder, heads=["intent", "act", "expressed_emotion", "goemotions"])
    plain, batched = plain_pipeline(folder, 1), plain_pipeline(folder, 32)
    ways: dict[str, Callable[[], Any]] = {
        "transformers pipeline": lambda: plain(texts),
        "transformers pipeline, batches of 32": lambda: batched(texts),
        "listenwell, the same head": lambda: list(one.annotate_all(dialogues)),
        "listenwell, four heads": lambda: list(every.annotate_all(dialogues)),
    }
    for way in ways.values():  # warm up
        way()
    times = [{name: seconds(way) for name, way in ways.items()} for _ in range(rounds)]
    speeds = {name: round(len(texts) / statistics.median(t[name] for t in times), 1) for name in ways}
    ours, *_ = (name for name in ways if name.endswith("same head"))
    ratios = {
        name: round(statistics.median(t[name] / t[ours] for t in times), 2)
        for name in ways
        if name.startswith("transformers")
    }
    return {
        "utterances": len(texts),
        "rounds": rounds,
        "utterances_per_second": speeds,
        "times_as_fast_as": ratios,
        "turn": one_turn(folder, rounds * 20),
    }


def one_turn(folder: Path, rounds: int) -> dict[str, float]:
    """What the listener asks of a turn, against bare passes of the encoder over the same tokens."""
    import torch

    from listenwell.annotators.views import context_view, encode_views

    dialogue = Dialogue(
        (
            Turn(SPEAKER, "I finally got the job I wanted, after so many interviews that came to nothing."),
            Turn("listener", "That is wonderful! How did you find out?"),
            Turn(SPEAKER, "They called me this morning. I could not stop shaking, I was so happy."),
        )
    )
    annotator = Annotator.load(folder)
    classifier, vocabulary = load_classifier(find_classifiers(folder)[0])
    (view,) = encode_views(vocabulary, [context_view(dialogue)], classifier.config.limit)
    tokens = torch.from_numpy(view.tokens.astype("int64"))[None]

    def generic_question() -> None:
        with torch.inference_mode():
            classifier.encoder(input_ids=tokens)

    def understood() -> None:
        annotator.understand(dialogue)

    for work in (generic_question, understood):
        work()
    pairs = [(seconds(generic_question), seconds(understood)) for _ in range(rounds)]
    return {
        "encoder_pass_ms": round(1000 * statistics.median(p for p, _ in pairs), 2),
        "understand_ms": round(1000 * statistics.median(u for _, u in pairs), 2),
        "passes": round(statistics.median(u / p for p, u in pairs), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--annotators", type=Path, default=SHIPPED, help="an annotators' folder")
    parser.add_argument("--count", type=int, default=800, help="utterances")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="write the figures here too")
    chosen = parser.parse_args()
    about = {name: value for name, value in environment().items() if name != "command"}
    figures = {**measure(chosen.annotators, chosen.count, chosen.rounds), **about}
    if chosen.out:
        chosen.out.write_text(json.dumps(figures, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in figures.items() if name not in about}, indent=1))
