"""Generate the replies of a system to a split: resumable, in one process or several.

Replies are written to replies.jsonl as they are generated; a run that was interrupted continues there.
`outputs.load_run` reads them back, and `score` measures them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from listenwell.corpora.sampling import example_id
from listenwell.dialogue import Example, Factors, Reply
from listenwell.errors import InputError
from listenwell.evaluation.perplexity import save_perplexity
from listenwell.evaluation.request import EvaluationRequest, reply_seed, run_shares
from listenwell.evaluation.systems import GOLD, NONE, PREDICTED, FactorModel, LanguageModel
from listenwell.files import disk_errors, written_whole
from listenwell.generators.plans import plan_of
from listenwell.listener import Listener, Request
from listenwell.progress import progress
from listenwell.results.store import environment
from listenwell.serialization import Json, dumps, indented

REPLIES, RUN, MADE = "replies.jsonl", "run.json", "made.json"
"""Files of a run's folder: the replies, the settings, and the command and machine that generated them."""
Answer = Callable[[Sequence[Example], Sequence[int]], Sequence[Reply]]
"""Answers a batch of examples, each with its seed."""


def generate(request: EvaluationRequest, perplexity: bool = False) -> Path:
    """Generate the replies that a request asks for; returns replies.jsonl.

    Args:
        request: the system and the examples. A run that was interrupted continues, with as many workers.
        perplexity: also save the perplexity of the human replies under the same factors. A generator
            without factors has only one, which is always saved.
    """
    system = request.system
    if perplexity and system.whole:
        raise InputError("A whole listener has no perplexity.", "Evaluate the generator alone: --factors.")
    listener = system.listener()
    about = request.describe(listener, None if system.whole else request.factors, generates=True)
    claim(request.out, {name: value for name, value in about.items() if name != "count"})
    file = request.out / REPLIES
    shares = request.divided()
    if len(shares) == 1 or file.exists():
        _generate_share(request, listener)
    else:
        run_shares(_generate_share, shares)
        _join(request, [_share_file(share) for share in shares])
    provenance = environment()
    with written_whole(request.out / MADE) as out:
        out.write(
            indented({name: provenance[name] for name in ("command", "commit", "machine", "time")}).encode()
        )
    generator = listener.generate
    if perplexity or (isinstance(generator, LanguageModel) and not isinstance(generator, FactorModel)):
        save_perplexity(request, generator)
    return file


def _generate_share(request: EvaluationRequest, listener: Listener | None = None) -> None:
    """Generate the replies of one share; a worker process loads the system itself."""
    listener = listener or request.system.listener()
    if request.system.whole:
        answer = listener_answer(listener, plan_of if request.factors == GOLD else None)
    else:
        answer = generator_answer(listener, request.factors)
    seed, size = request.split.sampling.seed, request.system.batch_size()
    write_replies(answer, request.examples, seed, _share_file(request), size)


def _share_file(request: EvaluationRequest) -> Path:
    share = f".{request.share + 1}-of-{request.shares}" if request.shares > 1 else ""
    return request.out / f"replies{share}.jsonl"


def _join(request: EvaluationRequest, files: Sequence[Path]) -> None:
    """Write the lines of all shares to replies.jsonl, in corpus order."""
    lines = [line for file in files for line in file.read_bytes().split(b"\n") if line.strip()]
    by_id = {json.loads(line)["id"]: line for line in lines}
    with written_whole(request.out / REPLIES) as out:
        for index, example in request.examples:
            out.write(by_id[example_id(example, index)] + b"\n")
    for file in files:
        file.unlink()


def listener_answer(listener: Listener, target: Callable[[Example], Factors | None] | None = None) -> Answer:
    """Answer examples with a listener; `target` gives the factors that a reply must have."""
    return lambda examples, seeds: listener.reply_batch(
        [
            Request(example.context, target(example) if target else None, seed)
            for example, seed in zip(examples, seeds, strict=True)
        ]
    )


def generator_answer(listener: Listener, factors: str) -> Answer:
    """Answer examples with a generator alone, without a reranker.

    Args:
        listener: the generator, as `System.listener` gives it.
        factors: "gold" forces the plan of the human reply, "predicted" leaves it to the generator, "none"
            generates from the dialogue alone.
    """
    generator = listener.generate
    if factors not in (GOLD, PREDICTED, NONE):
        raise InputError(f"No reply is made under {factors!r} factors.", "Give gold, predicted or none.")
    if factors != NONE and not isinstance(generator, FactorModel):
        raise InputError(f"{generator.name} has no factors.", "Evaluate it with --factors none.")
    if factors == PREDICTED:
        return listener_answer(listener)

    def with_gold_plans(examples: Sequence[Example], seeds: Sequence[int]) -> list[Reply]:
        requests = [
            (example.context, tuple(filter(None, [plan_of(example)])), seed)
            for example, seed in zip(examples, seeds, strict=True)
        ]
        first = [output.candidates[0] for output in generator.generate_batch(requests)]
        return [
            Reply(candidate.text, generator.name, seed, plan=candidate.plan)
            for candidate, seed in zip(first, seeds, strict=True)
        ]

    def without_plans(examples: Sequence[Example], seeds: Sequence[int]) -> Sequence[Reply]:
        unplanned = Listener(generator, listener.understand, None, listener.rerank, listener.guard)
        replies = listener_answer(unplanned)(examples, seeds)
        if any(reply.plan not in (None, Factors()) for reply in replies):
            raise InputError(f"{generator.name} always decides on factors.", "Give gold or predicted.")
        return replies

    return with_gold_plans if factors == GOLD else without_plans


def write_replies(
    answer: Answer, examples: Sequence[tuple[int, Example]], seed: int, file: Path, batch_size: int = 1
) -> list[str]:
    """Write one reply for each example; those that the file already holds are not generated again.

    Args:
        answer: answers a batch.
        examples: each with its index in the corpus.
        seed: of the run.
        file: JSONL with id, reply, reference, the plan where there is one and, where there are several, all
            candidates with their scores; flushed after each batch.
        batch_size: how many are answered in a batch.
    """
    ids = [example_id(example, index) for index, example in examples]
    replies = _resume(file, ids)
    with (
        disk_errors(file),
        file.open("ab") as out,
        progress("replying", total=len(examples), unit="replies") as advance,
    ):
        advance(len(replies))
        for start in range(len(replies), len(examples), batch_size):
            batch = examples[start : start + batch_size]
            seeds = [reply_seed(seed, index) for index, _ in batch]
            answers = answer([example for _, example in batch], seeds)
            for name, (_, example), reply in zip(
                ids[start : start + batch_size], batch, answers, strict=True
            ):
                out.write(_line(name, example, reply))
                replies.append(reply.text)
            out.flush()
            advance(len(batch))
    return replies


def _line(name: str, example: Example, reply: Reply) -> bytes:
    line: dict[str, Json] = {"id": name, "reply": reply.text, "reference": example.reply.text}
    if reply.plan is not None:
        line["plan"] = reply.plan.to_dict()
    if len(reply.candidates) > 1:
        line["candidates"] = [candidate.to_dict() for candidate in reply.candidates]
    return dumps(line).encode() + b"\n"


def claim(folder: Path, settings: Mapping[str, Json]) -> None:
    """Mark a folder as belonging to one run, so that replies of two runs never stand in one file."""
    mark, text = folder / RUN, dumps(dict(settings)) + "\n"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            if (folder / REPLIES).exists():
                raise InputError(f"{folder} holds replies of an unknown run.", "Name another folder: --out.")
            mark.write_text(text, encoding="utf-8")
        elif mark.read_text(encoding="utf-8") != text:
            raise InputError(
                f"{folder} belongs to a run with other settings (see its run.json).",
                "Name another folder with --out, or remove this one.",
            )


def _resume(file: Path, ids: Sequence[str]) -> list[str]:
    """The replies that a file already holds; a half-written last line is cut off."""
    if not file.exists():
        return []
    content = file.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    replies = []
    for number, line in enumerate(complete.split(b"\n")[:-1]):
        try:
            data = json.loads(line)
            name, reply = str(data["id"]), str(data["reply"])
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{file}:{number + 1} is damaged.", "Remove the file to start anew.") from None
        if number >= len(ids) or name != ids[number]:
            raise InputError(f"{file} holds replies to other contexts.", "Name another folder: --out.")
        replies.append(reply)
    if len(complete) < len(content):
        with file.open("rb+") as out:
            out.truncate(len(complete))
    return replies
