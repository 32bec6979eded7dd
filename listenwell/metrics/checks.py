"""What every metric asks of its input: something to measure, and two lists that belong together."""

from collections.abc import Sized

from listenwell.errors import InputError


def check_some(items: Sized, what: str) -> None:
    """There is at least one item; the mean of nothing is not a number to print."""
    if not len(items):
        raise InputError(f"There are no {what} to measure.", f"Give at least one of the {what}.")


def check_pairs(first: Sized, second: Sized, what: str) -> None:
    """Two lists are of the same length and not empty, so that no item is dropped in silence."""
    check_some(first, what)
    if len(first) != len(second):
        raise InputError(
            f"The {what} do not pair up: {len(first)} and {len(second)}.", "Give one for each, in one order."
        )
