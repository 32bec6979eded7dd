"""Listeners by name, loaded in the background so that the port answers at once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from listenwell.errors import ListenwellError
from listenwell.serving.api_errors import ApiError
from listenwell.serving.batching import Answers
from listenwell.serving.logs import log_failure

ALIAS = "listenwell"
"""Names the first model, for clients that must name one."""
RETRY_AFTER = 3.0
"""Seconds after which to ask again for a model that is being loaded."""


class Models:
    """The models that may be chosen.

    Args:
        names: the first is the default.
        load: a listener by its name; called once for each that is used.
        planning: those of them that make plans; None where that shows when they are loaded.
    """

    def __init__(
        self,
        names: Sequence[str],
        load: Callable[[str], Answers],
        planning: Sequence[str] | None = None,
    ) -> None:
        self.names, self._load, self._planning = tuple(names), load, planning
        self._found: dict[str, Future[Answers]] = {}

    def start(self, name: str | None = None) -> "Future[Answers]":
        """Begin to load a model, if that has not begun."""
        name = self.name_of(name)
        if name not in self._found:
            self._found[name] = Future()
            # A daemon: a service that is told to stop does not wait for a model to be loaded.
            threading.Thread(target=self._fill, args=(name,), name=f"loads {name}", daemon=True).start()
        return self._found[name]

    def get(self, name: str | None = None) -> tuple[str, Answers]:
        """A model and its name; 404 for an unknown one, 503 for one that is not ready."""
        name = self.name_of(name)
        found = self.start(name)
        if not found.done():
            raise ApiError(
                503, "loading", f"The model {name} is being loaded. Try again in a moment.", RETRY_AFTER
            )
        if error := found.exception():
            told = str(error) if isinstance(error, ListenwellError) else "See the log."
            raise ApiError(503, "model_failed", f"The model {name} could not be loaded. {told}")
        return name, found.result()

    def name_of(self, name: str | None) -> str:
        """The name itself, or the default's; an unknown one is refused."""
        if name is None or name == ALIAS:
            return self.names[0]
        if name not in self.names:
            known = ", ".join(self.names)
            raise ApiError(
                404, "model_not_found", f"There is no such model here. Known: {known}.", param="model"
            )
        return name

    def state(self, name: str) -> str:
        """One of asleep (until somebody chooses it), loading, ready, failed."""
        found = self._found.get(name)
        if found is None:
            return "asleep"
        if not found.done():
            return "loading"
        return "failed" if found.exception() else "ready"

    def can_plan(self, name: str) -> bool | None:
        """Whether a model makes plans, so that it can be steered; None where that shows when it is loaded."""
        if self.state(name) == "ready":
            return self._found[name].result().plan is not None
        return None if self._planning is None else name in self._planning

    def _fill(self, name: str) -> None:
        try:
            self._found[name].set_result(self._load(name))
        except Exception as error:
            log_failure(f"loading the model {name}", error)
            self._found[name].set_exception(error)
