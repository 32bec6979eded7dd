"""Progress bars on standard error, shown only to a person at a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Advance = Callable[[int], None]


@contextmanager
def progress(task: str, total: int | None = None, unit: str = "", rate: bool = False) -> Iterator[Advance]:
    """A bar for long work; call what it gives with the number of items just done.

    Args:
        task: what is being done, such as "reading empathetic_dialogues".
        total: how many items there are; None shows a count instead of a share.
        unit: what an item is, such as "dialogues"; "B" shows sizes.
        rate: show how many items are done in a second.
    """
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    try:
        from rich import progress as bars
        from rich.console import Console
    except ModuleNotFoundError:  # a bare training machine: silence, not failure
        yield lambda count: None
        return
    amount: bars.ProgressColumn = bars.DownloadColumn() if unit == "B" else bars.MofNCompleteColumn()
    columns: list[bars.ProgressColumn] = [
        bars.TextColumn("{task.description}", markup=False),  # it can hold a user's file name
        bars.BarColumn(),
        amount,
        bars.TextColumn("" if unit == "B" else unit),
        *([_rate_column()] if rate else []),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    ]
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        identity = bar.add_task(task, total=total)
        yield lambda count: bar.advance(identity, count)


def _rate_column() -> "ProgressColumn":
    """How many items were done in a second of late; the first call counts for nothing in it."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.1f}/s" if task.speed else "")

    return Rate()
