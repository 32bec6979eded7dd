"""Listeners by name, loaded in the background so that the port is open at once."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from listenwell.errors import ListenwellError
from listenwell.listener import Listener
from listenwell.serving.api_errors import ApiError
from listenwell.serving.logs import log_failure

ALIAS = "listenwell"
"""Names the first model, for clients that require a name."""
RETRY_AFTER = 3.0
"""Seconds after which to retry while a model loads."""


class Models:
    """The models that clients may select.

    Args:
        names: the first is the default.
        load: loads a listener by its name; called once per model.
        planning: the models that plan; None if that is known only after loading.
    """

    def __init__(
        self,
        names: Sequence[str],
        load: Callable[[str], Listener],
        planning: Sequence[str] | None = None,
    ) -> None:
        self.names, self._load, self._planning = tuple(names), load, planning
        self._listeners: dict[str, Future[Listener]] = {}

    def start(self, name: str | None = None) -> "Future[Listener]":
        """Start loading a model unless that has started."""
        name = self.name_of(name)
        if name not in self._listeners:
            self._listeners[name] = Future()
            # A daemon, so that shutting down does not wait for a model to load.
            threading.Thread(target=self._fill, args=(name,), name=f"loads {name}", daemon=True).start()
        return self._listeners[name]

    def get(self, name: str | None = None) -> tuple[str, Listener]:
        """The name and the listener; 404 for an unknown model, 503 for one that is not ready."""
        name = self.name_of(name)
        loading = self.start(name)
        if not loading.done():
            raise ApiError(
                503, "loading", f"The model {name} is being loaded. Try again in a moment.", RETRY_AFTER
            )
        if error := loading.exception():
            reason = str(error) if isinstance(error, ListenwellError) else "See the log."
            raise ApiError(503, "model_failed", f"The model {name} could not be loaded. {reason}")
        return name, loading.result()

    def name_of(self, name: str | None) -> str:
        """The name itself, or that of the default model; 404 for an unknown one."""
        if name is None or name == ALIAS:
            return self.names[0]
        if name not in self.names:
            known = ", ".join(self.names)
            raise ApiError(
                404, "model_not_found", f"There is no such model here. Known: {known}.", param="model"
            )
        return name

    def state(self, name: str) -> str:
        """One of asleep (not requested yet), loading, ready, failed."""
        listener = self._listeners.get(name)
        if listener is None:
            return "asleep"
        if not listener.done():
            return "loading"
        return "failed" if listener.exception() else "ready"

    def can_plan(self, name: str) -> bool | None:
        """Whether a model plans and can be steered; None if that is known only after loading."""
        if self.state(name) == "ready":
            return self._listeners[name].result().plan is not None
        return None if self._planning is None else name in self._planning

    def _fill(self, name: str) -> None:
        try:
            self._listeners[name].set_result(self._load(name))
        except Exception as error:
            log_failure(f"loading the model {name}", error)
            self._listeners[name].set_exception(error)
