"""Optional libraries, loaded when a metric is computed."""

from importlib import import_module
from typing import Any

from listenwell.errors import MissingExtraError


def library(module: str, package: str, purpose: str) -> Any:  # noqa: ANN401 - a module, mostly untyped
    """A module of an optional package; where it is missing, the error holds the install command.

    Args:
        module: the dotted name to import.
        package: the name to install.
        purpose: what needs it, as the first words of a sentence.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, "bench", purpose) from error
