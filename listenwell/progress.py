"""Progress bars on standard error, shown only to a person at a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


@contextmanager
def progress(task: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
    """A bar for long work; call what it gives with the number of items just done.

    Args:
        task: what is being done, such as "reading empathetic_dialogues".
        total: how many items there are; None shows a count instead of a share.
        unit: what an item is, such as "dialogues"; "B" shows sizes.
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
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        amount,
        bars.TextColumn("" if unit == "B" else unit),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    ]
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        identity = bar.add_task(task, total=total)
        yield lambda count: bar.advance(identity, count)
