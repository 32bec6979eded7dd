"""listenwell: a toolkit and chat service for empathetic dialogue.

    from listenwell import Listener
    Listener.from_pretrained().reply("I finally got promoted today!").text

Importing this package imports no model library: classes with heavy dependencies are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from listenwell.dialogue import Candidate, Dialogue, Factors, Persona, Prediction, Reply, Scored, Turn
from listenwell.errors import ListenwellError
from listenwell.version import __version__

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator
    from listenwell.corpora import load_corpus
    from listenwell.listener import Listener
    from listenwell.rankers.ranker import Ranker
    from listenwell.safety.guard import Guard

__all__ = [
    "Annotator",
    "Candidate",
    "Dialogue",
    "Factors",
    "Guard",
    "Listener",
    "ListenwellError",
    "Persona",
    "Prediction",
    "Ranker",
    "Reply",
    "Scored",
    "Turn",
    "__version__",
    "load_corpus",
]

_LAZY = {
    "Annotator": "listenwell.annotators.annotator",
    "Guard": "listenwell.safety.guard",
    "Listener": "listenwell.listener",
    "Ranker": "listenwell.rankers.ranker",
    "load_corpus": "listenwell.corpora",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "Reading":
        import warnings

        warnings.warn(
            "listenwell.Reading is deprecated; use listenwell.Prediction.", DeprecationWarning, stacklevel=2
        )
        return Prediction
    raise AttributeError(f"module 'listenwell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
