"""A dialogue as a ChatML prompt within a token budget.

Marks are special tokens, put in by number; everything a person wrote is text between them. The system
turn with the persona always stays, the newest turn always stays, the oldest turns go first.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import InputError
from listenwell.generators.base import Prompt
from listenwell.runtime.text import Vocabulary

START, END = "<|im_start|>", "<|im_end|>"


def build_prompt(
    vocabulary: Vocabulary,
    dialogue: Dialogue,
    system: str,
    budget: int,
    shots: Sequence[tuple[str, str]] = (),
) -> Prompt:
    """The prompt for the listener's next turn.

    Args:
        vocabulary: the model's.
        dialogue: ends with somebody else's turn; the listener's own persona goes into the system turn.
        system: who the listener is; empty for no system turn (unless there is a persona).
        budget: how many tokens the prompt may have.
        shots: exchanges that show the model how to answer; they stand before the dialogue and always stay.
    """
    persona = dialogue.persona_of(dialogue.listener)
    if persona and persona.lines:
        system = f"{system}\nAbout you: {' '.join(persona.lines)}".strip()
    head = turn_tokens(vocabulary, "system", vocabulary.encode(system)) if system else []
    for said, answer in shots:
        head += turn_tokens(vocabulary, "user", vocabulary.encode(said))
        head += turn_tokens(vocabulary, "assistant", vocabulary.encode(answer))
    tail = reply_head(vocabulary)
    room = budget - len(head) - len(tail)
    frame = len(turn_tokens(vocabulary, "user", []))
    if room < frame + budget // 4:  # less than a quarter for what was said is no conversation
        raise InputError(
            f"The persona and the instructions take {len(head)} of the prompt's {budget} tokens.",
            "Give fewer or shorter persona lines, or a larger prompt_tokens in the recipe.",
        )
    notices: list[str] = []
    kept: list[list[int]] = []
    for turn in reversed(dialogue.turns):
        text = vocabulary.encode(turn.text)
        if not kept and len(text) + frame > room:
            left_out = len(text) - (room - frame)
            text = text[left_out:]
            notices.append(f"The text was too long: its first {left_out} tokens were left out.")
        tokens = turn_tokens(vocabulary, role_of(turn, dialogue), text)
        if len(tokens) > room:
            break
        kept.append(tokens)
        room -= len(tokens)
    if dropped := len(dialogue.turns) - len(kept):
        notices.append(f"The talk is long: the {dropped} oldest turns were left out.")
    body = [token for tokens in reversed(kept) for token in tokens]
    # A turn ends with its end mark, or where the model begins another.
    stop = frozenset({vocabulary.special(END), vocabulary.special(START)})
    return Prompt((*head, *body, *tail), stop, tuple(notices))


def with_short_persona(vocabulary: Vocabulary, dialogue: Dialogue, tokens: int) -> Dialogue:
    """The same with as many first lines of the listener's persona as so many tokens hold."""
    persona = dialogue.persona_of(dialogue.listener)
    if persona is None:
        return dialogue
    lengths = [len(given) + 1 for given in vocabulary.encode_many(persona.lines)]
    kept = sum(total <= tokens for total in accumulate(lengths))
    others = (one for one in dialogue.personas if one is not persona)
    return replace(dialogue, personas=(*others, replace(persona, lines=persona.lines[:kept])))


def reply_head(vocabulary: Vocabulary) -> list[int]:
    """What stands before the listener's own words: all that P(y), a reply without context, has before it."""
    return [vocabulary.special(START), *vocabulary.encode("assistant\n")]


def turn_tokens(vocabulary: Vocabulary, role: str, text: list[int]) -> list[int]:
    """One turn with its marks; `text` is encoded already."""
    mark = vocabulary.special
    return [mark(START), *vocabulary.encode(f"{role}\n"), *text, mark(END), *vocabulary.encode("\n")]


def role_of(turn: Turn, dialogue: Dialogue) -> str:
    """ChatML's name for who speaks: the listener is the assistant, everybody else the user."""
    return "assistant" if turn.speaker == dialogue.listener else "user"
