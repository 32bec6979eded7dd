"""The training sentences of the crisis classifier: our own templates, with [one|other] alternatives."""

import random
import re
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path

from listenwell.errors import InputError
from listenwell.safety.head import LABELS

SENTENCES = Path(__file__).with_name("sentences.txt")
_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")


def training_examples(each: int, seed: int, file: Path = SENTENCES) -> Iterator[tuple[str, str]]:
    """Label and text of every example.

    Args:
        each: the maximum number of variants per line.
        seed: for drawing them.
        file: lines of sentences under lines "= label".
    """
    draw, label = random.Random(seed), ""
    for number, raw in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("= "):
            label = line[2:]
            continue
        if label not in LABELS:
            raise InputError(
                f"{file.name}:{number} is under the label {label!r}.", f"Known: {', '.join(LABELS)}."
            )
        yield from ((label, text) for text in variants(line, each, draw))


def variants(line: str, most: int, draw: random.Random) -> list[str]:
    """Up to `most` different variants of a line."""
    parts = _ALTERNATIVES.split(line)  # fixed, alternatives, fixed, …, fixed
    choices = [part.split("|") for part in parts[1::2]]
    count = prod(map(len, choices))
    if count <= most:
        taken = [list(chosen) for chosen in product(*choices)]
    else:
        numbers = draw.sample(range(count), most)
        taken = [_numbered(choices, number) for number in numbers]
    return [" ".join(_filled(parts[::2], chosen).split()) for chosen in taken]


def _numbered(choices: list[list[str]], number: int) -> list[str]:
    chosen = list[str]()
    for options in choices:
        number, index = divmod(number, len(options))
        chosen.append(options[index])
    return chosen


def _filled(fixed: list[str], chosen: list[str]) -> str:
    return fixed[0] + "".join(choice + after for choice, after in zip(chosen, fixed[1:], strict=True))
