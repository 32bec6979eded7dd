"""Load the outputs of a system: a run of ours, the released files of MoEL and MIME, or anybody's JSONL."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from listenwell.corpora.base import CorpusLoader, Report, text_lines
from listenwell.corpora.sampling import Sampling, example_id
from listenwell.corpora.sources import Source
from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Turn
from listenwell.errors import InputError
from listenwell.evaluation.baselines import (
    FORMATS,
    HUMAN,
    BaselineFormat,
    check_system,
    read_baselines,
    recognize,
)
from listenwell.evaluation.generate import MADE, REPLIES, RUN
from listenwell.evaluation.perplexity import perplexity_metrics, saved_perplexity
from listenwell.files import hash_files, sha256
from listenwell.results.metric_registry import METRICS

BASELINES_CORPUS, BASELINES_SPLIT = "empathetic_dialogues", "test"
OWN = "the file's own"


@dataclass(frozen=True)
class Outputs:
    """Replies and references in one order, and how they came about."""

    system: str
    replies: list[str]
    references: list[str]
    data: str
    """sha256 over the files that the references came from."""
    corpus: str
    """The corpus of the references; OWN where they came with the file."""
    split: str
    conditions: dict[str, str] = field(default_factory=dict)
    contexts: list[Dialogue] = field(default_factory=list)
    """The dialogue before each reply; empty where it is not known."""
    plans: list[Factors | None] = field(default_factory=list)
    """The plan of each reply; empty where there is none."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What was measured when they were generated, such as the perplexity of the references."""
    seed: int | None = None
    """Of the run that generated them."""
    checkpoint: str | None = None
    """sha256 over the files of the model that generated them, where it is ours."""


def load_outputs(
    file: Path, loader: CorpusLoader, split: str, system: str | None = None, sampling: Sampling | None = None
) -> Outputs:
    """Load the replies in a file, with their references.

    Args:
        file: replies.jsonl of a run of ours, which is taken whole; MoEL's or MIME's released file, recognized
            by its contents; or JSONL with `reply` and perhaps `reference` and `id` in each line.
        loader: the corpus, for contexts, and for replies that come without references.
        split: its split.
        system: which system of a released file; the name of the row for other files.
        sampling: how many replies to take.
    """
    sampling = sampling or Sampling()
    if file.name == REPLIES and (file.parent / RUN).is_file() and sampling.limit is None:
        return load_run(file, loader, system)
    if not file.is_file():
        raise InputError(f"There is no file {file}.", "Name a file with replies.")
    if form := recognize(file):
        if (loader.name, split) != (BASELINES_CORPUS, BASELINES_SPLIT):
            raise InputError(
                f"{file.name} answers {BASELINES_CORPUS} {BASELINES_SPLIT}, not {loader.name} {split}.",
                "Leave out --corpus and --split.",
            )
        return _from_baselines(file, form, system, sampling)
    lines = list(_lines(file))
    name = system or file.stem
    if any(name in known.names() for known in FORMATS):
        raise InputError(
            f"{name!r} is the name of a released system, and {file.name} is not its file.",
            "Give these replies another name with --system.",
        )
    if not _all_have(lines, "reference", file):
        return replace(_with_corpus(file, lines, loader, split, sampling), system=name)
    sample = [line for _, line in sampling.draw(lines)]
    return Outputs(
        name,
        [line["reply"] for line in sample],
        [line["reference"] for line in sample],
        hash_files([file]),
        OWN,
        "–",
        {"replies": "a file with its own references", "sample": sampling.describe(len(lines), len(sample))},
    )


def load_run(file: Path, loader: CorpusLoader | Source, system: str | None = None) -> Outputs:
    """Load the replies.jsonl of a run with contexts, plans and settings; `system` renames the row."""
    if not file.is_file():
        raise InputError(f"The run in {file.parent} is not finished.", "Start it again: it continues.")
    run = _read_object(file.parent / RUN)
    if run.get("corpus") != loader.name:
        raise InputError(
            f"{file.parent} answers {run.get('corpus')}, not {loader.name}.",
            f"Name its corpus: --corpus {run.get('corpus')}",
        )
    split = str(run["split"])
    contexts = {
        example_id(example, index): example.context for index, example in enumerate(loader.examples(split))
    }
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
    if not lines:
        raise InputError(f"{file} is empty.", "Let the run generate its replies first.")
    if unknown := [line["id"] for line in lines if line["id"] not in contexts]:
        raise InputError(
            f"{loader.name} {split} has no context {unknown[0]!r}.",
            "Name the folder of the corpus that the run had: --path.",
        )
    plans = [Factors.from_dict(line["plan"]) if line.get("plan") else None for line in lines]
    conditions = {str(name): str(value) for name, value in run["conditions"].items()}
    measured = {}
    if sums := saved_perplexity(file.parent):
        conditions["tokenizer"] = sums.tokenizer
        every = perplexity_metrics(sums).items()
        measured = {name: value for name, value in every if METRICS[name].group == "perplexity"}
    if (file.parent / MADE).is_file():
        origin = _read_object(file.parent / MADE)
        machine = f"{origin['commit'] or 'unknown'}, {origin['machine']}"
        conditions["made by"] = f"{origin['command']} ({machine})"
    return Outputs(
        system=system or str(run["system"]),
        replies=[line["reply"] for line in lines],
        references=[line["reference"] for line in lines],
        data=str(run["data"]),
        corpus=loader.name,
        split=split,
        conditions=conditions,
        contexts=[contexts[line["id"]] for line in lines],
        plans=plans if any(plans) else [],
        metrics=measured,
        seed=run["seed"],
        checkpoint=run["checkpoint"],
    )


def _read_object(file: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise InputError(f"{file} is damaged.", "Generate the replies again in another folder.")
    return data


def _from_baselines(file: Path, form: BaselineFormat, system: str | None, sampling: Sampling) -> Outputs:
    if system is None:
        raise InputError(
            f"{file.name} holds several systems.", f"Choose one with --system: {', '.join(form.names())}."
        )
    name, report = check_system(form, system), Report()
    records = list(read_baselines(file, form, report))
    sample = [record for _, record in sampling.draw(records)]
    conditions = form.conditions_of(name) | {
        "pool": "none: replies were generated" if name != HUMAN else "none",
        "contexts": f"those of {file.name}; texts in lower case, taken apart into tokens",
        "sample": sampling.describe(len(records), len(sample)),
    }
    if report.skipped:
        conditions["broken blocks"] = "; ".join(report.lines())
    return Outputs(
        name,
        [record.reply(name) for record in sample],
        [record.reference for record in sample],
        hash_files([file]),
        BASELINES_CORPUS,
        BASELINES_SPLIT,
        conditions,
        [baseline_context(record.context) for record in sample],
    )


def baseline_context(turns: Sequence[str]) -> Dialogue:
    """The turns of a released record as a dialogue: the speaker begins, then they alternate."""
    return Dialogue(tuple(Turn(LISTENER if index % 2 else SPEAKER, text) for index, text in enumerate(turns)))


_Line = Mapping[str, str]
"""A line of somebody's JSONL file: position (file and line number), reply, and perhaps reference and id."""


def _with_corpus(
    file: Path, lines: Sequence[_Line], loader: CorpusLoader, split: str, sampling: Sampling
) -> Outputs:
    """Replies to a corpus: by id, or one for each example in its order."""
    data, examples = hash_files(loader.check(split)), list(loader.examples(split))
    ids = [example_id(example, index) for index, example in enumerate(examples)]
    if _all_have(lines, "id", file):
        replies = _by_id(lines, set(ids))
    elif len(lines) == len(ids):
        replies = {name: line["reply"] for name, line in zip(ids, lines, strict=True)}
    else:
        raise InputError(
            f"{file.name} has {len(lines)} replies; {loader.name} {split} asks for {len(ids)}.",
            "Give one line for each, in the corpus's order, or an id in each line.",
        )
    indices = [index for index, _ in sampling.draw(ids)]
    rule = sampling.describe(len(ids), len(indices))
    missing = [ids[index] for index in indices if ids[index] not in replies]
    if missing and sampling.limit is not None:
        raise InputError(
            f"{file.name} has no reply to {missing[0]} and {len(missing) - 1} others of the sample.",
            "Answer all of them, or leave out --limit to measure what is there.",
        )
    if missing:
        indices = [index for index in indices if ids[index] in replies]
        rule = f"the {len(indices):,} of {len(ids):,} that the file answers"
    return Outputs(
        file.stem,
        [replies[ids[index]] for index in indices],
        [examples[index].reply.text for index in indices],
        data,
        loader.name,
        split,
        {"replies": f"a file, sha256 {sha256(file)}", "sample": rule},
        [examples[index].context for index in indices],
    )


def _by_id(lines: Sequence[_Line], known: set[str]) -> dict[str, str]:
    replies: dict[str, str] = {}
    for line in lines:
        name = line["id"]
        if name not in known:
            raise InputError(
                f"{line['position']}: the corpus has no example {name!r}.",
                "An id is the conversation's, # and the number of turns before the reply: hit:1_conv:2#3.",
            )
        if name in replies:
            raise InputError(f"{line['position']}: a second reply to {name!r}.", "Give one for each id.")
        replies[name] = line["reply"]
    return replies


def _lines(file: Path) -> Iterator[_Line]:
    report = Report()
    for number, text in text_lines(file, report):
        if not text.strip():
            continue
        position = f"{file.name}:{number}"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(
                f"{position} is not JSON.", "Give MoEL's or MIME's released file, or one JSON object a line."
            ) from None
        fields = data.items() if isinstance(data, dict) else ()
        values = {name: value for name, value in fields if name in ("reply", "reference", "id") and value}
        if not isinstance(values.get("reply"), str) or not values["reply"].strip():
            raise InputError(f"{position} has no reply.", 'Give each line as {"reply": "…"}, and not empty.')
        if not all(isinstance(value, str) for value in values.values()):
            raise InputError(f"{position}: reference and id must be texts.", "Put them in quotation marks.")
        yield values | {"position": position}
    if report.skipped:
        raise InputError(f"{file.name}: {report.lines()[0]}.", "Save the file as UTF-8.")


def _all_have(lines: Sequence[_Line], column: str, file: Path) -> bool:
    """Whether every line has a reference or an id; some with and some without is an error."""
    if not lines:
        raise InputError(f"{file.name} is empty.", 'Give each line as {"reply": "…"}.')
    without = [line["position"] for line in lines if column not in line]
    if without and len(without) < len(lines):
        raise InputError(
            f"{without[0]} has no {column}, other lines have.", "Give it in all lines or in none."
        )
    return not without
