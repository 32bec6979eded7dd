"""A stored conversation: the messages, every reply to each, and the reply that it continues from."""

from dataclasses import dataclass

from listenwell.dialogue import LISTENER, SPEAKER, Dialogue, Factors, Persona, Reply, Turn


@dataclass(frozen=True)
class Version:
    """One of the replies to a message."""

    reply: Reply
    target: Factors | None = None
    """The requested factors."""
    name: str | None = None
    """The client's idempotency key."""


@dataclass(frozen=True)
class Exchange:
    """A message and the replies to it."""

    number: int
    message: str
    created: float
    versions: tuple[Version, ...] = ()
    current: int | None = None
    """The version of the current reply, from 1."""

    @property
    def current_version(self) -> Version | None:
        """The reply that the conversation continues from, with its target."""
        return self.versions[self.current - 1] if self.current else None


@dataclass(frozen=True)
class Conversation:
    """A visitor's conversation."""

    id: str
    model: str | None
    persona: tuple[str, ...]
    created: float
    changed: float
    exchanges: tuple[Exchange, ...] = ()

    def exchange(self, number: int) -> Exchange | None:
        """The exchange with this number."""
        return next((exchange for exchange in self.exchanges if exchange.number == number), None)

    def named(self, name: str) -> tuple[Exchange, int] | None:
        """The exchange and version of the reply with a client's key."""
        return next(
            (
                (exchange, number)
                for exchange in self.exchanges
                for number, version in enumerate(exchange.versions, 1)
                if version.name == name
            ),
            None,
        )

    def dialogue(self, until: int | None = None, most: int | None = None) -> Dialogue | None:
        """Convert to a `Dialogue` with each reply's model, seed and target as notes; None without messages.

        Args:
            until: end with the message of this exchange.
            most: keep this many of the latest turns.
        """
        turns = list[Turn]()
        for exchange in self.exchanges:
            turns.append(Turn(SPEAKER, exchange.message))
            if exchange.number == until:
                break
            version = exchange.current_version
            if version and version.reply.text.strip():
                notes = {"model": version.reply.model, "seed": str(version.reply.seed)}
                notes |= {"target": version.target.to_json()} if version.target else {}
                turns.append(Turn(LISTENER, version.reply.text, notes=tuple(notes.items())))
        if not turns:
            return None
        personas = (Persona(LISTENER, self.persona),) if self.persona else ()
        return Dialogue(tuple(turns[-most:] if most else turns), id=self.id, personas=personas)
