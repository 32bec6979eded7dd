"""The state of a conversation in the terminal or through a pipe."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.dialogue import Dialogue, Factors, Reply
    from listenwell.listener import Listener


@dataclass
class Conversation:
    """The turns so far, saved to a file if the user names one."""

    listener: "Listener"
    persona: tuple[str, ...]
    seed: int | None
    save: Path | None
    earlier: bytes = b""
    """The lines that the file held before."""
    target: "Factors | None" = None
    """Factors that replies must have."""
    dialogue: "Dialogue | None" = None
    last: "Reply | None" = None
    """The last reply with its emotion and plan."""
    tries: int = 0
    """How often the last reply was regenerated."""

    def say(self, text: str, stream: bool) -> "Reply":
        """Reply to a message and add both turns."""
        self.tries = 0
        return self._say(text, stream)

    def _say(self, text: str, stream: bool) -> "Reply":
        from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Persona, Turn

        reply = self.listener.reply(
            text,
            history=self.dialogue,
            persona=self.persona,
            target=self.target,
            seed=None if self.seed is None else self.seed + self.tries,
            on_text=(lambda chunk: typer.echo(visible(chunk), nl=False)) if stream else None,
        )
        personas = (Persona(LISTENER, self.persona),) if self.persona else ()
        before = self.dialogue.turns if self.dialogue else ()
        turns = (*before, Turn(SPEAKER, text), Turn(LISTENER, reply.text))
        self.dialogue = Dialogue(turns, personas=personas)
        self.last = reply
        if self.save:
            self.write(self.save, self.earlier)
        return reply

    def again(self, stream: bool) -> "Reply | None":
        """Regenerate the last reply; None if there is none."""
        if self.dialogue is None:
            return None
        before, message = self.dialogue, self.dialogue.turns[-2].text
        self.tries += 1
        self.dialogue = replace(before, turns=before.turns[:-2]) if len(before.turns) > 2 else None
        try:
            return self._say(message, stream)
        except BaseException:  # interrupted or failed: the conversation stays as it was
            self.dialogue = before
            raise

    def start_over(self) -> None:
        """Start a new conversation; the previous one stays in the file."""
        if self.dialogue and self.save:
            self.earlier += self.dialogue.to_json().encode() + b"\n"
        self.dialogue = self.last = None

    def write(self, file: Path, earlier: bytes) -> None:
        """Write the conversation after the earlier ones, atomically."""
        from listenwell.files import written_whole

        if self.dialogue:
            with written_whole(file) as out:
                out.write(earlier + self.dialogue.to_json().encode() + b"\n")


def read_saved(file: Path) -> bytes:
    """The lines of a file of conversations; empty if there is none, an error if it holds something else."""
    from listenwell.corpora.own import OwnJsonl
    from listenwell.errors import InputError

    file = file.expanduser()
    if not file.exists():
        if file.parent.exists() and not file.parent.is_dir():
            raise InputError(f"{file.parent} is no folder.", "Name another file for the conversation.")
        return b""
    if file.is_dir():
        raise InputError(f"{file} is a folder.", "Name a file for the conversation.")
    reader = OwnJsonl(file)
    for _ in reader.read("all"):
        pass
    if reader.report.skipped:
        raise InputError(
            f"{file} holds something other than conversations.", "Name another file, so that nothing is lost."
        )
    content = file.read_bytes()
    return content if not content or content.endswith(b"\n") else content + b"\n"
