"""How every figure looks and is saved: the same data gives the same bytes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from listenwell.errors import MissingExtraError
from listenwell.files import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

KINDS = ("svg", "png")
BLUE, ORANGE, GREEN, VERMILION, PINK, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
"""Okabe and Ito's colours (2008), which people with any colour vision can tell apart."""
STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters everywhere
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.titlesize": 12,
    "svg.hashsalt": "listenwell",
}


def need_matplotlib() -> None:
    """Raise the error that names the install command where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("matplotlib", "plots", "Drawing figures") from error


def new_canvas(width: float, height: float) -> "Canvas":
    """An empty figure, its size in inches; matplotlib is imported only here."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained")


def save(canvas: "Canvas", folder: Path, name: str, mark: str | None = None) -> list[Path]:
    """Write a figure as SVG and PNG; returns the files. A mark is written into them."""
    files = []
    for kind in KINDS:
        file = folder / f"{name}.{kind}"
        # Without these entries the day and the version would be written into the file.
        plain = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        with written_whole(file) as out:
            canvas.savefig(
                out, format=kind, dpi=150, metadata={"Description": mark, **plain} if mark else plain
            )
        files.append(file)
    return files
