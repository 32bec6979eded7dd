"""How long reading EmpatheticDialogues into `Dialogue`s takes, against `csv.reader` over the same file.

The ratio must stay at or below 3. csv.reader runs without quoting: with its usual rules it joins rows of
this file.
"""

import argparse
import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from listenwell.corpora.empathetic_dialogues import EmpatheticDialogues
from listenwell.files import data_folder

LIMIT = 3.0


def timed(work: Callable[[], int]) -> float:
    """The processor time of one run, in seconds: waiting for other programs is not counted."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def plain(file: Path) -> int:
    """Rows of csv.reader."""
    with file.open(encoding="utf-8", newline="") as lines:
        return sum(1 for _ in csv.reader(lines, quoting=csv.QUOTE_NONE))


def ratio(folder: Path, split: str, runs: int) -> dict[str, object]:
    """Both times and their ratio: the shortest runs, which the rest of the machine disturbed least.

    The two take turns, so that a busy minute slows both.
    """
    file = folder / f"{split}.csv"
    works = (lambda: plain(file), lambda: sum(1 for _ in EmpatheticDialogues(folder).read(split)))
    times = [[timed(work) for work in works] for _ in range(runs)]
    baseline, ours = (min(column) for column in zip(*times, strict=True))
    return {
        "file": file.name,
        "rows": plain(file),
        "csv_seconds": round(baseline, 4),
        "dialogue_seconds": round(ours, 4),
        "ratio": round(ours / baseline, 2),
        "limit": LIMIT,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, default=data_folder() / "empathetic_dialogues")
    parser.add_argument("--split", default="train")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    result = ratio(arguments.path, arguments.split, arguments.runs)
    print(json.dumps(result))
    sys.exit(result["ratio"] > LIMIT)  # type: ignore[operator]
