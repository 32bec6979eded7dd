"""What was measured as result files, for the docs' tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from listenwell.files import hash_files, sha256
from listenwell.results.store import Result, environment, file_name, write_result
from listenwell.safety import crisis
from listenwell.safety.head import SHIPPED
from listenwell.safety.replies import FILE, REASONS, fault_rates
from listenwell.serialization import Json

CRISIS, REPLIES = "safety", "reply_filter"
"""The tasks: their tables in the docs."""


def keep_crisis(figures: Mapping[str, Json], file: Path, folder: Path) -> None:
    """Write the figures of each part of a list (`measure.report`)."""
    for part, found in figures["figures"].items():
        metrics = {name.replace(" ", "_"): value for name, value in found.items()}
        count = int(metrics.pop("sentences"))
        conditions = {
            "part": part,
            "crises": f"{metrics.pop('crises'):.0f}",
            "thresholds": f"sure {crisis.SURE}, agrees {crisis.AGREES}, uneasy {crisis.UNEASY}",
        }
        result = Result(
            task=CRISIS,
            system=f"{part}: crisis",
            corpus="own sentences",
            split=part,
            count=count,
            data=sha256(file),
            conditions=tuple(conditions.items()),
            checkpoint=hash_files([SHIPPED / "model.safetensors", SHIPPED / "config.json"]),
            **_percentages(metrics),
            **_around(f"list {file.name} --keep {folder.name}"),
        )
        write_result(result, folder / file_name(result))


def keep_replies(
    systems: Mapping[str, Sequence[str]], where: tuple[str, str], data: str, command: str, folder: Path
) -> None:
    """Write for each system what share of its replies is filtered, by reason.

    Args:
        systems: the replies of each.
        where: the corpus and split whose dialogues they answer.
        data: sha256 of where they were read.
        command: after `python -m listenwell.safety`.
        folder: gets a file for each system.
    """
    for system, replies in systems.items():
        result = Result(
            task=REPLIES,
            system=system,
            corpus=where[0],
            split=where[1],
            count=len(replies),
            data=data,
            conditions=(("reasons", ", ".join(REASONS)), ("patterns", f"sha256 {sha256(FILE)[:12]}")),
            **_percentages(fault_rates(replies)),
            **_around(f"{command} --keep {folder.name}"),
        )
        write_result(result, folder / file_name(result))


def _percentages(metrics: Mapping[str, float]) -> dict[str, Any]:
    return {"metrics": tuple(metrics.items()), "units": tuple((name, "percent") for name in metrics)}


def _around(command: str) -> dict[str, Any]:
    """Where and by what it was measured; a path on this machine is nobody's business."""
    return environment() | {"command": f"python -m listenwell.safety {command}"}
