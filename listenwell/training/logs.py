"""What a run tells: a line of JSON an event, a bar in the terminal, curves in TensorBoard where installed."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from listenwell.training.state import Progress

_BAR = 24


class Log:
    """Writes log.jsonl; without a folder (all processes but the first) it is silent."""

    def __init__(self, folder: Path | None, steps: int) -> None:
        self._file = (folder / "log.jsonl").open("a", encoding="utf-8") if folder else None
        self._steps = steps
        self._board = _tensorboard(folder) if folder else None
        self._before: tuple[float, int] | None = None  # seconds and tokens at the last line
        self._bar_shown = False

    def step(self, progress: Progress, seconds: float, loss: float, rate: float) -> None:
        """Mean training loss (nats a target) since the last line, learning rate and speed."""
        if self._file is None:
            return
        then, tokens = self._before or (0.0, 0)
        self._before = (seconds, progress.tokens)
        speed = (progress.tokens - tokens) / max(1e-9, seconds - then)
        left = seconds / max(1, progress.steps) * max(0, self._steps - progress.steps)
        self._write(
            {"step": progress.steps, "loss": round(loss, 4), "rate": rate, "tokens_per_second": round(speed)}
        )
        self._show(
            min(1.0, progress.steps / max(1, self._steps)),
            f"step {progress.steps}/{self._steps}  loss {loss:.3f}  {speed:,.0f} tokens/s  "
            f"{left:,.0f} s left",
        )

    def event(self, name: str, **values: Any) -> None:  # noqa: ANN401
        """Something worth a line of its own: a validation, a resume, the end."""
        if self._file is None:
            return
        self._write({"event": name, **values})
        if self._bar_shown:
            print(file=sys.stderr)
            self._bar_shown = False
        shown = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
            for key, value in values.items()
        )
        print(f"{name}: {shown}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Flush and close everything."""
        if self._file:
            self._file.close()
        if self._board:
            self._board.close()

    def _write(self, event: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps({"time": round(time.time(), 2), **event}) + "\n")
        self._file.flush()
        if self._board and "step" in event:
            for key, value in event.items():
                if isinstance(value, float | int) and key != "step":
                    self._board.add_scalar(key, value, event["step"])

    def _show(self, share: float, line: str) -> None:
        """One line that is overwritten at a terminal, a line a time elsewhere."""
        if sys.stderr.isatty():
            bar = "█" * round(_BAR * share)
            print(f"\r\x1b[K{bar:·<{_BAR}} {line}", end="", file=sys.stderr, flush=True)
            self._bar_shown = True
        else:
            print(line, file=sys.stderr, flush=True)


def _tensorboard(folder: Path) -> Any:  # noqa: ANN401
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # not installed: the JSONL has the same numbers
        return None
    return SummaryWriter(str(folder / "tensorboard"))
