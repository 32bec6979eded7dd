"""listenwell: empathetic dialogue you can install, steer, train and measure.

    from listenwell import Listener
    Listener.load().reply("I finally got promoted today!").text

Importing this package imports no torch: `Listener` and `Annotator` are loaded when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

from listenwell.dialogue import Candidate, Dialogue, Factors, Persona, Reading, Reply, Scored, Turn
from listenwell.errors import ListenwellError
from listenwell.version import __version__

if TYPE_CHECKING:
    from listenwell.annotators.annotator import Annotator
    from listenwell.listener import Listener

__all__ = [
    "Annotator",
    "Candidate",
    "Dialogue",
    "Factors",
    "Listener",
    "ListenwellError",
    "Persona",
    "Reading",
    "Reply",
    "Scored",
    "Turn",
    "__version__",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "Annotator":
        from listenwell.annotators.annotator import Annotator

        return Annotator
    if name == "Listener":
        from listenwell.listener import Listener

        return Listener
    raise AttributeError(f"module 'listenwell' has no attribute {name!r}")
