"""A conversation as it is kept: what was said, every reply to it, and which one it goes on from."""

from dataclasses import dataclass

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Persona, Reply, Turn


@dataclass(frozen=True)
class Version:
    """One of the replies to what was said."""

    reply: Reply
    want: Factors | None = None
    """What it was asked to do."""
    name: str | None = None
    """The client's own name for it."""


@dataclass(frozen=True)
class Exchange:
    """What was said, and the replies to it."""

    number: int
    said: str
    created: float
    versions: tuple[Version, ...] = ()
    current: int | None = None
    """The version of the reply that counts, from 1."""

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Version 1 first."""
        return tuple(version.reply for version in self.versions)

    @property
    def chosen(self) -> Version | None:
        """The version that the conversation goes on from."""
        return self.versions[self.current - 1] if self.current else None

    @property
    def reply(self) -> Reply | None:
        """Its reply."""
        return self.chosen.reply if self.chosen else None


@dataclass(frozen=True)
class Conversation:
    """A visitor's talk."""

    id: str
    model: str | None
    persona: tuple[str, ...]
    created: float
    changed: float
    exchanges: tuple[Exchange, ...] = ()

    def exchange(self, number: int) -> Exchange | None:
        """One by its number."""
        return next((one for one in self.exchanges if one.number == number), None)

    def named(self, name: str) -> tuple[Exchange, int] | None:
        """The reply that has a client's name: its exchange and version."""
        return next(
            (
                (exchange, place)
                for exchange in self.exchanges
                for place, version in enumerate(exchange.versions, 1)
                if version.name == name
            ),
            None,
        )

    def dialogue(self, until: int | None = None, most: int | None = None) -> Dialogue | None:
        """The talk as listenwell's own; None where nothing was said.

        Args:
            until: end with what was said in this exchange, without its replies.
            most: the latest so many turns.
        """
        turns = list[Turn]()
        for one in self.exchanges:
            turns.append(Turn(SPEAKER, one.said))
            if one.number == until:
                break
            if one.chosen and one.chosen.reply.text.strip():
                turns.append(_turn(one.chosen))
        if not turns:
            return None
        personas = (Persona(LISTENER, self.persona),) if self.persona else ()
        return Dialogue(tuple(turns[-most:] if most else turns), id=self.id, personas=personas)


def _turn(version: Version) -> Turn:
    """A reply as a turn; what it was asked to do is among its notes, as JSON."""
    reply, want = version.reply, version.want
    notes = {"model": reply.model, "seed": str(reply.seed)} | ({"want": want.to_json()} if want else {})
    return Turn(LISTENER, reply.text, notes=tuple(notes.items()))
