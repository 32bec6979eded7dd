"""Metrics of crisis detection and of the reply filter."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from listenwell.errors import InputError
from listenwell.safety.context_modifiers import CONCERN, CRISIS
from listenwell.safety.crisis import Detector, Finding
from listenwell.safety.replies import fault_rates, faults
from listenwell.serialization import Json, Record


@dataclass(frozen=True)
class Labelled(Record):
    """A sentence of the test list."""

    text: str
    crisis: bool
    category: str
    kind: str | None = None
    """Of the crisis, where it is one."""
    held_out: bool = False
    """Whether it was held out while patterns and thresholds were tuned."""


def read_list(file: Path) -> list[Labelled]:
    """The labelled sentences of a JSONL file."""
    return [Labelled.from_json(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def measured(detector: Detector, sentences: Sequence[Labelled]) -> dict[str, float]:
    """Recall and false alarms, in percent; a concern is no alarm and is counted separately."""
    pairs = [(sentence, detector.find(sentence.text)) for sentence in sentences]
    crises = [finding for sentence, finding in pairs if sentence.crisis]
    others = [finding for sentence, finding in pairs if not sentence.crisis]
    if not crises or not others:
        raise InputError("A list needs sentences of both kinds.", "Add some with crisis true and false.")
    right = [
        finding.kind == sentence.kind
        for sentence, finding in pairs
        if sentence.crisis and finding.level == CRISIS
    ]
    return {
        "sentences": float(len(pairs)),
        "crises": float(len(crises)),
        "recall": _share(crises, CRISIS),
        "recall with concerns": _share(crises, CRISIS) + _share(crises, CONCERN),
        "false alarms": _share(others, CRISIS),
        "concerns among the others": _share(others, CONCERN),
        "right kind": 100 * sum(right) / len(right) if right else 0.0,
    }


def report(detector: Detector, sentences: Sequence[Labelled]) -> dict[str, Json]:
    """The metrics of all sentences, of those held out, of the others, and counts by category."""
    held = [sentence for sentence in sentences if sentence.held_out]
    tuned = [sentence for sentence in sentences if not sentence.held_out]
    categories: dict[str, Json] = {}
    for category in dict.fromkeys(sentence.category for sentence in sentences):
        own = [sentence for sentence in sentences if sentence.category == category]
        levels = Counter(detector.find(sentence.text).level for sentence in own)
        categories[category] = {"sentences": len(own), **levels}
    parts = {"all": sentences, "held out": held, "tuned on": tuned}
    figures = {name: measured(detector, part) for name, part in parts.items() if part}
    return {"figures": figures, "categories": categories}


def alarms(detector: Detector, texts: Iterable[str]) -> dict[str, float]:
    """The percentage of unlabelled texts that are a crisis or a concern."""
    findings = [detector.find(text) for text in texts]
    shares = {level: _share(findings, level) for level in (CRISIS, CONCERN)}
    return {"texts": float(len(findings)), **shares}


def filtered(systems: Mapping[str, Sequence[str]], show: int = 0) -> dict[str, Json]:
    """The percentage of each system's replies that is filtered, by reason, and examples of them."""
    rates = {name: fault_rates(replies) for name, replies in systems.items()}
    shown = {
        name: [
            {"reply": reply, **{fault.reason: fault.text for fault in own_faults}}
            for reply in dict.fromkeys(replies)
            if (own_faults := faults(reply))
        ][:show]
        for name, replies in systems.items()
    }
    return {"faults": rates} | ({"filtered": shown} if show else {})


def read_run(file: Path) -> tuple[dict[str, list[str]], tuple[str, str]]:
    """The replies and all candidates of a run, and its corpus and split.

    Args:
        file: replies.jsonl in the folder of the run.
    """
    try:
        run = json.loads((file.parent / "run.json").read_bytes())
        lines = [json.loads(line) for line in file.read_bytes().split(b"\n") if line.strip()]
        replies = [str(line["reply"]) for line in lines]
        candidates = [str(item["text"]) for line in lines for item in line.get("candidates", ())]
        name, split = str(run["system"]), (str(run["corpus"]), str(run["split"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} holds no replies of a run: {error}", "Name its replies.jsonl.") from None
    return {name: replies} | ({f"{name}, all candidates": candidates} if candidates else {}), split


def _share(findings: Sequence[Finding], level: str) -> float:
    return 100 * sum(finding.level == level for finding in findings) / len(findings) if findings else 0.0


def table(figures: dict[str, Json]) -> str:
    """The metrics of a `report` as a Markdown table."""
    rows = ["| part | sentences | crises | recall (%) | false alarms (%) | concerns among the others (%) |"]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for part, own in figures["figures"].items():
        counts = f"{own['sentences']:.0f} | {own['crises']:.0f}"
        shares = " | ".join(
            f"{own[name]:.1f}" for name in ("recall", "false alarms", "concerns among the others")
        )
        rows.append(f"| {part} | {counts} | {shares} |")
    return "\n".join(rows)


def as_json(figures: dict[str, Json]) -> str:
    """Metrics as JSON, rounded to two decimals."""
    return json.dumps(
        json.loads(json.dumps(figures), parse_float=lambda text: round(float(text), 2)), indent=1
    )
