"""Copying: a line of the listener's persona said word for word."""

from collections.abc import Iterable

from listenwell.words import longest_common_run, spoken_words

RUN = 5
"""Words in a row from where on a line is quoted; "i like to" and "i have a dog" are everybody's words."""


def copied(reply: str, persona: Iterable[str]) -> float:
    """The largest share of a persona line that the reply says in one row, from 0 to 1; 0 below 5 words."""
    own = spoken_words(reply)
    worst = 0.0
    for line in persona:
        told = spoken_words(line)
        run = longest_common_run(own, told)
        if run >= RUN:
            worst = max(worst, run / len(told))
    return worst
