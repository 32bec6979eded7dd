"""Stock phrases: what empathetic systems say whatever they hear, by the list that the metric has."""

from listenwell.metrics import STOCK_PHRASES, phrase_rate, stock_phrase_rate, words


def stock_phrases(reply: str) -> tuple[str, ...]:
    """The stock phrases that a reply holds, in the order of the list."""
    if not stock_phrase_rate([reply]):  # most replies hold none, and one look tells
        return ()
    return tuple(phrase for phrase in STOCK_PHRASES if phrase_rate([reply], phrase))


def generic_share(reply: str) -> float:
    """How much of a reply is stock phrase, from 0 to 1.

    "I am so sorry to hear that." is little else; before two sentences that only fit this talk it weighs less.
    Words that several phrases share count once.
    """
    count = sum(word[0].isalnum() for word in words(reply))
    spent = {word for phrase in stock_phrases(reply) for word in phrase.split()}
    return min(1.0, len(spent) / count) if count else 0.0
