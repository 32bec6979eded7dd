"""How well crises are told from everyday talk, and how much of a corpus is flagged or filtered."""

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
    """Whether it was kept aside while patterns and thresholds were made."""


def read_list(file: Path) -> list[Labelled]:
    """The labelled sentences of a JSONL file."""
    return [Labelled.from_json(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def measured(detector: Detector, sentences: Sequence[Labelled]) -> dict[str, float]:
    """Recall and false alarms, in percent; a concern is no alarm, and is counted beside them."""
    pairs = [(one, detector.find(one.text)) for one in sentences]
    crises = [found for one, found in pairs if one.crisis]
    others = [found for one, found in pairs if not one.crisis]
    if not crises or not others:
        raise InputError("A list needs sentences of both kinds.", "Add some with crisis true and false.")
    right = [found.kind == one.kind for one, found in pairs if one.crisis and found.level == CRISIS]
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
    """All figures of a list: as a whole, held out and not, and by category."""
    held = [one for one in sentences if one.held_out]
    tuned = [one for one in sentences if not one.held_out]
    categories: dict[str, Json] = {}
    for category in dict.fromkeys(one.category for one in sentences):
        own = [one for one in sentences if one.category == category]
        levels = Counter(detector.find(one.text).level for one in own)
        categories[category] = {"sentences": len(own), **levels}
    parts = {"all": sentences, "held out": held, "tuned on": tuned}
    figures = {name: measured(detector, part) for name, part in parts.items() if part}
    return {"figures": figures, "categories": categories}


def alarms(detector: Detector, texts: Iterable[str]) -> dict[str, float]:
    """Of texts that nobody labelled, how many are a crisis or a concern, in percent."""
    found = [detector.find(text) for text in texts]
    return {"texts": float(len(found)), CRISIS: _share(found, CRISIS), CONCERN: _share(found, CONCERN)}


def filtered(systems: Mapping[str, Sequence[str]], show: int = 0) -> dict[str, Json]:
    """The share of each system's replies that is filtered, by reason; and some of them under "filtered"."""
    rates: dict[str, Json] = {name: fault_rates(replies) for name, replies in systems.items()}
    shown: dict[str, Json] = {
        name: [
            {"reply": reply, **{fault.reason: fault.text for fault in found}}
            for reply in dict.fromkeys(replies)
            if (found := faults(reply))
        ][:show]
        for name, replies in systems.items()
    }
    return rates | ({"filtered": shown} if show else {})


def read_made(file: Path) -> tuple[dict[str, list[str]], tuple[str, str]]:
    """What a listener said and all that it proposed, and which corpus and split it answered.

    Args:
        file: replies.jsonl in the folder of its run, as `listenwell evaluate generate` leaves it.
    """
    try:
        run = json.loads((file.parent / "run.json").read_bytes())
        lines = [json.loads(line) for line in file.read_bytes().split(b"\n") if line.strip()]
        said = [str(line["reply"]) for line in lines]
        proposed = [str(one["text"]) for line in lines for one in line.get("candidates", ())]
        name, where = str(run["system"]), (str(run["corpus"]), str(run["split"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} holds no replies of a run: {error}", "Name its replies.jsonl.") from None
    return {name: said} | ({f"{name}, all candidates": proposed} if proposed else {}), where


def _share(found: Sequence[Finding], level: str) -> float:
    return 100 * sum(one.level == level for one in found) / len(found) if found else 0.0


def table(figures: dict[str, Json]) -> str:
    """The figures of a list (`report`) as a table for people."""
    rows = ["| part | sentences | crises | recall (%) | false alarms (%) | concerns among the others (%) |"]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for part, own in figures["figures"].items():
        counts = f"{own['sentences']:.0f} | {own['crises']:.0f}"
        shares = " | ".join(
            f"{own[name]:.1f}" for name in ("recall", "false alarms", "concerns among the others")
        )
        rows.append(f"| {part} | {counts} | {shares} |")
    return "\n".join(rows)


def written(figures: dict[str, Json]) -> str:
    """Figures as JSON, rounded to a hundredth."""
    return json.dumps(
        json.loads(json.dumps(figures), parse_float=lambda text: round(float(text), 2)), indent=1
    )
