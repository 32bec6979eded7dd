"""A conversation that grows, in the terminal or through a pipe."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from listenwell.cli.terminal import visible

if TYPE_CHECKING:
    from listenwell.dialogue import Dialogue, Factors, Reply
    from listenwell.listener import Listener


@dataclass
class Talk:
    """Turns so far, kept on disk where the user asked for it."""

    listener: "Listener"
    persona: tuple[str, ...]
    seed: int | None
    save: Path | None
    earlier: bytes = b""
    """Talks that the file held before, as lines: they stay."""
    want: "Factors | None" = None
    """What replies must do."""
    dialogue: "Dialogue | None" = None
    last: "Reply | None" = None
    """The last reply, with what was heard and meant."""
    tries: int = 0
    """How often the last reply was asked for again."""

    def say(self, text: str, stream: bool) -> "Reply":
        """Answer and remember both turns."""
        self.tries = 0
        return self._say(text, stream)

    def _say(self, text: str, stream: bool) -> "Reply":
        from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Persona, Turn

        reply = self.listener.reply(
            text,
            history=self.dialogue,
            persona=self.persona,
            want=self.want,
            seed=None if self.seed is None else self.seed + self.tries,
            on_text=(lambda piece: typer.echo(visible(piece), nl=False)) if stream else None,
        )
        personas = (Persona(LISTENER, self.persona),) if self.persona else ()
        before = self.dialogue.turns if self.dialogue else ()
        turns = (*before, Turn(SPEAKER, text), Turn(LISTENER, reply.text))
        self.dialogue = Dialogue(turns, personas=personas)
        self.last = reply
        if self.save:
            self.keep(self.save, self.earlier)
        return reply

    def again(self, stream: bool) -> "Reply | None":
        """Answer the last text anew, in place of the last reply; None where there is none."""
        if self.dialogue is None:
            return None
        before, said = self.dialogue, self.dialogue.turns[-2].text
        self.tries += 1
        self.dialogue = replace(before, turns=before.turns[:-2]) if len(before.turns) > 2 else None
        try:
            return self._say(said, stream)
        except BaseException:  # stopped or failed: what was said stays
            self.dialogue = before
            raise

    def start_over(self) -> None:
        """Begin a new talk; the one before stays in the file."""
        if self.dialogue and self.save:
            self.earlier += self.dialogue.to_json().encode() + b"\n"
        self.dialogue = self.last = None

    def keep(self, file: Path, earlier: bytes) -> None:
        """Write the talk after the earlier ones, whole or not at all."""
        from listenwell.files import written_whole

        if self.dialogue:
            with written_whole(file) as out:
                out.write(earlier + self.dialogue.to_json().encode() + b"\n")


def earlier_talks(file: Path) -> bytes:
    """The lines of a file of talks; empty where there is none, an error where it holds something else."""
    from listenwell.corpora.own import OwnJsonl
    from listenwell.errors import InputError

    file = file.expanduser()
    if not file.exists():
        if file.parent.exists() and not file.parent.is_dir():
            raise InputError(f"{file.parent} is no folder.", "Name another file for the talk.")
        return b""
    if file.is_dir():
        raise InputError(f"{file} is a folder.", "Name a file for the talk.")
    reader = OwnJsonl(file)
    for _ in reader.read("all"):
        pass
    if reader.report.skipped:
        raise InputError(
            f"{file} holds something else than talks.", "Name another file, so that nothing is lost."
        )
    content = file.read_bytes()
    return content if not content or content.endswith(b"\n") else content + b"\n"
