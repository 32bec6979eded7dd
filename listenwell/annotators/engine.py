"""Which engine annotators and rankers run on: onnxruntime, which is small, or torch, which also trains."""

from importlib.util import find_spec

from listenwell.errors import InputError, MissingExtraError, unknown_name
from listenwell.runtime.engines import NAMES

AUTO, ONNX, TORCH = NAMES
_NEEDED = ("onnx", "onnxruntime")


def choose_engine(asked: str, what: str, fits: bool = True) -> str:
    """ONNX or TORCH; an error says what to install where neither can be.

    Args:
        asked: one of NAMES; AUTO takes onnxruntime where it is installed and can run the model.
        what: the model, for messages, such as "The ranker poly".
        fits: whether onnxruntime can run it.
    """
    if asked not in NAMES:
        raise unknown_name("engine", asked, NAMES)
    if asked == ONNX and not fits:
        raise InputError(
            f"{what} does not run on onnxruntime.",
            "Use the engine torch, which comes with: pip install 'listenwell[train]'",
        )
    if asked != TORCH and fits:
        if all(map(is_installed, _NEEDED)):
            return ONNX
        if asked == ONNX:
            raise InputError(
                f"{what} needs the packages {' and '.join(_NEEDED)} to run on onnxruntime.",
                f"Install them with: pip install {' '.join(_NEEDED)}",
            )
    if not is_installed("torch"):
        raise MissingExtraError("torch", "train", what)
    return TORCH


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
