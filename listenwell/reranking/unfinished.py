"""Replies that stop in the middle, or only ask a bare question back."""

from listenwell.words import spoken_words, word_set

DANGLING = word_set("a an the and or but my your their our because if than i'm i've you're which into very")
"""Words that no sentence ends with. "to", "with" and "is" can: "i would love to"."""
BARE = word_set("""
    what why when where who how which really oh is was are were did do does that this it so happened you he
    she they and then ok okay wow hmm huh for to of your the a mean made make happen come
    """)
"""Words of questions that fit any talk."""
SHORT = 6
"""Words of a bare question at most."""


def unfinished(reply: str) -> bool:
    """Whether a reply was cut off: it ends with an ellipsis sign, a comma, or a word that wants another.

    A missing full stop is no fault: people leave it out.
    """
    text = reply.rstrip().rstrip("\"'”’")
    last = (spoken_words(text) or ("",))[-1]
    return not text or text.endswith(("…", ",")) or (text[-1].isalnum() and last in DANGLING)


def generic_question(reply: str) -> bool:
    """Whether a reply is nothing but a question that would fit any talk: "what happened?", "really?"."""
    own = spoken_words(reply)
    return reply.rstrip().endswith("?") and len(own) <= SHORT and set(own) <= BARE
