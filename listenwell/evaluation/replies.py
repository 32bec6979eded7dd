"""The reply protocol: one reply for each context, and every reply metric over all of them.

Replies are written to a file as they are made, so an interrupted run goes on where it stopped.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from listenwell import metrics
from listenwell.corpora.sampling import example_id
from listenwell.dialogue import Example, Factors, Reply
from listenwell.errors import InputError
from listenwell.evaluation.embedder import Embedder
from listenwell.files import disk_errors
from listenwell.listener import Asked, Listener
from listenwell.progress import progress
from listenwell.results.metric_registry import SAMPLE
from listenwell.serialization import Json, dumps

Answer = Callable[[Sequence[Example], Sequence[int]], Sequence[Reply]]
"""How examples are answered, each with its seed."""
RUN = "run.json"
"""What a folder of replies says of the run that made them."""
DRAWS = 20
"""Sets of SAMPLE replies over which the variety of a larger set is averaged."""


def measure_replies(
    replies: Sequence[str], references: Sequence[str], embedder: Embedder
) -> dict[str, float]:
    """Every reply metric, under the names of `units.METRICS`.

    Args:
        replies: what the system said.
        references: what a person said in its place, in the same order.
        embedder: whose vectors the metrics of meaning use.
    """
    overlap = metrics.bleu(replies, references)
    own, theirs = embedder.embed(replies), embedder.embed(references)
    return {
        **{f"bleu_{order}": overlap[f"BLEU-{order}"] for order in (1, 2, 3, 4)},
        "bleu_average": overlap["average"],
        "sacre_bleu": _sacre_bleu(replies, references),
        "rouge_l": metrics.rouge_l(replies, references),
        "meteor": metrics.meteor(replies, references),
        "greedy_matching": metrics.greedy_matching(own.words, theirs.words),
        "sentence_similarity": metrics.sentence_similarity(own.sentences, theirs.sentences),
        **_variety(replies),
        **_variety_of_sample(replies),
        "stock_phrases": metrics.stock_phrase_rate(replies),
        "sorry_to_hear": metrics.phrase_rate(replies, "sorry to hear"),
        "length": metrics.mean_length(replies),
        "vader": metrics.vader(replies),
    }


def metric_conditions(embedder: Embedder) -> dict[str, str]:
    """The switches of the metrics themselves, for a result's conditions."""
    return {
        "words": "listenwell.words: lower case, contractions joined, marks are words",
        "sacreBLEU": metrics.sacre_bleu(["a"], ["a"])[1],
        "encoder": embedder.name,
        "stock phrases": f"{len(metrics.STOCK_PHRASES)}: {'; '.join(metrics.STOCK_PHRASES)}",
        f"variety of {SAMPLE}": f"mean of {DRAWS} sets of {SAMPLE} replies, drawn by numpy default_rng(0)",
    }


def _sacre_bleu(replies: Sequence[str], references: Sequence[str]) -> float:
    """sacreBLEU without its warning about tokenized texts: the conditions say what the texts are."""
    log = logging.getLogger("sacrebleu")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        return metrics.sacre_bleu(replies, references)[0]
    finally:
        log.setLevel(level)


def _variety(replies: Sequence[str]) -> dict[str, float]:
    share = metrics.distinct(replies)
    return {
        "distinct_1": share["distinct-1 in percent"],
        "distinct_2": share["distinct-2 in percent"],
        "distinct_replies": metrics.distinct_reply_rate(replies),
    }


def _variety_of_sample(replies: Sequence[str]) -> dict[str, float]:
    """The same figures on sets of one size, so that systems with fewer replies can stand beside others."""
    if len(replies) < SAMPLE:
        return {}
    random = np.random.default_rng(0)
    draws = [
        _variety([replies[place] for place in random.choice(len(replies), SAMPLE, replace=False)])
        for _ in range(DRAWS)
    ]
    return {f"{name}_of_{SAMPLE}": float(np.mean([draw[name] for draw in draws])) for name in draws[0]}


def reply_seed(seed: int, place: int) -> int:
    """The seed of one reply: it depends on the run's seed and the example's place in the corpus alone.

    So the same context gets the same reply whatever else is in the sample, and in any order.
    """
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0])


def generate_replies(
    listener: Listener, examples: Sequence[tuple[int, Example]], seed: int, file: Path
) -> list[str]:
    """One reply of a listener for each example; see `write_replies`."""
    return write_replies(by_listener(listener), examples, seed, file)


def by_listener(
    listener: Listener, want: Callable[[Example], Factors | None] = lambda example: None
) -> Answer:
    """Examples answered as a listener would, all that are given at once; `want` says what a reply must do."""
    return lambda examples, seeds: listener.reply_many(
        [Asked(example.context, want(example), seed) for example, seed in zip(examples, seeds, strict=True)]
    )


def write_replies(
    answer: Answer, examples: Sequence[tuple[int, Example]], seed: int, file: Path, batch: int = 1
) -> list[str]:
    """One reply for each example; what the file already holds is not made again.

    Args:
        answer: how examples are answered.
        examples: each with its place in the corpus.
        seed: of the run.
        file: JSONL with id, reply, reference, the reply's plan where it has one and, where there was a
            choice, all candidates with their scores; written line by line, each flushed.
        batch: how many are answered at a time.
    """
    ids = [example_id(example, place) for place, example in examples]
    done = _resumed(file, ids)
    with (
        disk_errors(file),
        file.open("ab") as out,
        progress("replying", total=len(examples), unit="replies") as advance,
    ):
        advance(len(done))
        for start in range(len(done), len(examples), batch):
            asked = examples[start : start + batch]
            seeds = [reply_seed(seed, place) for place, _ in asked]
            replies = answer([example for _, example in asked], seeds)
            for name, (_, example), reply in zip(ids[start : start + batch], asked, replies, strict=True):
                out.write(_line(name, example, reply))
                done.append(reply.text)
            out.flush()
            advance(len(asked))
    return done


def _line(name: str, example: Example, reply: Reply) -> bytes:
    line: dict[str, Json] = {"id": name, "reply": reply.text, "reference": example.reply.text}
    if reply.plan is not None:
        line["plan"] = reply.plan.to_dict()
    if len(reply.candidates) > 1:
        line["candidates"] = [candidate.to_dict() for candidate in reply.candidates]
    return dumps(line).encode() + b"\n"


def claim(folder: Path, run: Mapping[str, Json]) -> None:
    """Mark a folder as belonging to one run, so that replies of two runs never stand in one file."""
    mark, text = folder / RUN, dumps(dict(run)) + "\n"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            if (folder / "replies.jsonl").exists():
                raise InputError(f"{folder} holds replies of an unknown run.", "Name another folder: --out.")
            mark.write_text(text, encoding="utf-8")
        elif mark.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{folder} belongs to a run with other settings (see its run.json).",
                "Name another folder with --out, or remove this one.",
            )


def _resumed(file: Path, ids: Sequence[str]) -> list[str]:
    """The replies that a file holds; a half-written line at its end is cut off."""
    if not file.exists():
        return []
    raw = file.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    replies = []
    for number, line in enumerate(whole.split(b"\n")[:-1]):
        try:
            data = json.loads(line)
            name, reply = str(data["id"]), str(data["reply"])
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{file}:{number + 1} is damaged.", "Remove the file to start anew.") from None
        if number >= len(ids) or name != ids[number]:
            raise InputError(f"{file} holds replies to other contexts.", "Name another folder: --out.")
        replies.append(reply)
    if len(whole) < len(raw):
        with file.open("rb+") as out:
            out.truncate(len(whole))
    return replies
