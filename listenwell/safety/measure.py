"""Metrics of crisis detection and of the reply filter."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from listenwell.corpora.risk import KIND, LEVEL
from listenwell.dialogue import Dialogue
from listenwell.errors import InputError
from listenwell.labels import RISK_LEVELS
from listenwell.metrics import fleiss_kappa, wilson_interval
from listenwell.safety.classifier import CONCERN, CRISIS, NONE
from listenwell.safety.crisis import Detector, Finding
from listenwell.safety.replies import fault_rates, faults
from listenwell.serialization import Json, Record

LEAST = 20
"""Messages of a kind or form that has metrics of its own."""
LOOKALIKE = "lookalike"
"""How the form of a harmless message begins that resembles one at risk."""


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


@dataclass(frozen=True)
class Case:
    """A labelled message and what was detected in it."""

    dialogue: Dialogue
    """Ends with the message."""
    level: str
    kind: str
    form: str
    finding: Finding

    @property
    def is_lookalike(self) -> bool:
        """Whether it is harmless and resembles a message at risk."""
        return self.level == NONE and self.form.startswith(LOOKALIKE)


def read_list(file: Path) -> list[Labelled]:
    """The labelled sentences of a JSONL file."""
    return [Labelled.from_json(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def cases(detector: Detector, dialogues: Iterable[Dialogue]) -> list[Case]:
    """Every labelled turn of dialogues (`corpora.risk`), each detected with the turns before it only."""
    labelled = list[Case]()
    for dialogue in dialogues:
        for number, turn in enumerate(dialogue.turns):
            if (level := turn.note(LEVEL)) and (kind := turn.note(KIND)):
                until = replace(dialogue, turns=dialogue.turns[: number + 1])
                labelled.append(Case(until, level, kind, turn.note("form") or "", detector.assess(until)))
    return labelled


def risk_report(cases: Sequence[Case]) -> dict[str, dict[str, float]]:
    """The metrics of all cases, and of every kind and form of at least LEAST messages.

    The false alarms are those among look-alikes, and among all harmless messages.
    """
    parts: dict[str, list[Case]] = {"all": list(cases)}
    for name, key in (("kind", _kind), ("form", _form)):
        for case in cases:
            parts.setdefault(f"{name} {key(case)}", []).append(case)
    return {name: risk_metrics(own) for name, own in parts.items() if name == "all" or len(own) >= LEAST}


def _kind(case: Case) -> str:
    return case.kind


def _form(case: Case) -> str:
    return case.form.removeprefix(LOOKALIKE).strip() or "other"


def risk_metrics(cases: Sequence[Case]) -> dict[str, float]:
    """Shares in percent with their 95 % intervals (Wilson 1927), where there are messages to count."""
    crises = [case for case in cases if case.level == CRISIS]
    grave = [case for case in cases if case.level != NONE]
    harmless = [case for case in cases if case.level == NONE]
    lookalikes = [case for case in harmless if case.is_lookalike]
    figures: dict[str, float] = {"messages": float(len(cases))}
    shares: tuple[tuple[str, list[Case], Callable[[Case], bool]], ...] = (
        ("crisis recall", crises, _is_crisis),
        ("crisis or concern recall", crises, _is_alarm),
        ("concern recall", [case for case in grave if case.level == CONCERN], _is_alarm),
        ("false alarms among look-alikes", lookalikes, _is_crisis),
        ("concerns among look-alikes", lookalikes, _is_concern),
        ("false alarms", harmless, _is_crisis),
        ("right level", list(cases), lambda case: case.finding.level == case.level),
        (
            "right kind",
            [case for case in crises if _is_crisis(case)],
            lambda case: case.finding.kind == case.kind,
        ),
    )
    for name, counted, is_hit in shares:
        if counted:
            hits = sum(map(is_hit, counted))
            low, high = wilson_interval(hits, len(counted))
            figures[name] = 100 * hits / len(counted)
            figures[f"{name}, low"], figures[f"{name}, high"] = 100 * low, 100 * high
    return figures


def _is_crisis(case: Case) -> bool:
    return case.finding.level == CRISIS


def _is_concern(case: Case) -> bool:
    return case.finding.level == CONCERN


def _is_alarm(case: Case) -> bool:
    return case.finding.level != NONE


def label_agreement(files: Iterable[Path]) -> dict[str, float]:
    """Agreement of writer and second annotator, in percent, and Fleiss' kappa times 100."""
    rows = [
        row
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if "second_level" in (row := json.loads(line))
    ]
    if not rows:
        raise InputError("No message has a second label.", "Name a folder such as data/risk.")
    counts = np.array(
        [[(row["level"], row["second_level"]).count(level) for level in RISK_LEVELS] for row in rows]
    )
    kinds = [
        row["kind"] == row["second_kind"] for row in rows if row["level"] == row["second_level"] == CRISIS
    ]
    return {
        "messages": float(len(rows)),
        "level_agreement": 100 * sum(row["level"] == row["second_level"] for row in rows) / len(rows),
        "level_kappa": 100 * fleiss_kappa(counts),
        "kind_agreement": 100 * sum(kinds) / len(kinds) if kinds else 0.0,
    }


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
