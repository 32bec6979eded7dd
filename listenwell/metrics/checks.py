"""Checks of the input of every metric, and its optional libraries."""

from collections.abc import Sized
from importlib import import_module
from typing import Any

from listenwell.errors import InputError, MissingExtraError


def check_some(items: Sized, what: str) -> None:
    """Check that there is at least one item; the mean of nothing is not a number."""
    if not len(items):
        raise InputError(f"There are no {what} to measure.", f"Give at least one of the {what}.")


def check_pairs(first: Sized, second: Sized, what: str) -> None:
    """Check that two lists have the same length and are not empty, so that no item is silently dropped."""
    check_some(first, what)
    if len(first) != len(second):
        raise InputError(
            f"The {what} do not pair up: {len(first)} and {len(second)}.", "Give one for each, in one order."
        )


def library(module: str, package: str, purpose: str) -> Any:  # noqa: ANN401 - a module, mostly untyped
    """Import a module of an optional package, or raise the error that holds the install command."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(package, "bench", purpose) from error
