"""listenwell: empathetic dialogue you can install, steer, train and measure.

    from listenwell import Listener
    Listener.load().reply("I finally got promoted today!").text

Importing this package imports no torch: `Listener` is loaded when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from listenwell.dialogue import Candidate, Dialogue, Factors, Persona, Reply, Turn
from listenwell.errors import ListenwellError
from listenwell.version import __version__

if TYPE_CHECKING:
    from listenwell.listener import Listener

__all__ = [
    "Candidate",
    "Dialogue",
    "Factors",
    "Listener",
    "ListenwellError",
    "Persona",
    "Reply",
    "Turn",
    "__version__",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    if name == "Listener":
        from listenwell.listener import Listener

        return Listener
    raise AttributeError(f"module 'listenwell' has no attribute {name!r}")
