"""One base error for everything a user can meet; every message says what to do next.

Both halves are arguments, so an error without advice cannot be raised.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class ListenwellError(Exception):
    """What went wrong, and what to do about it.

    Args:
        problem: one sentence about what is wrong.
        advice: one sentence that tells the reader the next step.
    """

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem, advice)  # both, so that the error survives pickling between processes
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem} {self.advice}"


class InputError(ListenwellError):
    """What the user gave (a text, a dialogue, a setting) cannot be used."""


class UnknownNameError(ListenwellError):
    """A name (label, model, corpus) is unknown; the message holds the near ones."""


class CorpusError(ListenwellError):
    """A corpus is missing, or its files are not what their publisher describes."""


class DownloadError(ListenwellError):
    """A download failed, or what arrived is not what was pinned."""


class WeightsError(ListenwellError):
    """Base weights cannot be found or read."""


class CheckpointError(ListenwellError):
    """A checkpoint folder is missing, damaged, or not ours."""


class RecipeError(ListenwellError):
    """A recipe file has an unknown key or a value of the wrong kind."""


class MissingExtraError(ListenwellError):
    """An optional package is needed; the message holds the install command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed.",
            f"Install it with: pip install 'listenwell[{extra}]'",
        )
        self.args = (package, extra, purpose)


def nearest(name: str, names: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like a mistyped one, the nearest first; case does not matter."""
    by_folded = {known.casefold(): known for known in names}
    return [by_folded[match] for match in get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.5)]


def unknown_name(kind: str, name: str, names: Iterable[str]) -> UnknownNameError:
    """The error for an unknown name: the near ones if there are any, else all of them."""
    known = list(names)
    near = nearest(name, known)
    advice = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"Known: {', '.join(known)}."
    return UnknownNameError(f"There is no {kind} named {name!r}.", advice)
