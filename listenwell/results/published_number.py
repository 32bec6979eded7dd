"""A number that someone else printed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One number that someone else printed."""

    task: str
    system: str
    metric: str
    """A name of `units.METRICS`, in its unit."""
    value: float
    source: str
    conditions: str
    beside: str = ""
    """Which of our rows it is held against, where that is not of the same name."""
