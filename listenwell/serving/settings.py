"""What a service is told when it starts; nothing is configured elsewhere."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.errors import InputError
from listenwell.generators import DEFAULT

SHORTEST_KEY = 16
"""Characters of the shortest API key: a shorter one can be guessed."""
NOTICE = "This is a program that listens: no human, no therapist, and no replacement for help from people."


@dataclass(frozen=True)
class Limits:
    """How much one request, one visitor and all together may ask for."""

    body_bytes: int = 512 * 1024
    body_seconds: float = 30.0
    """How long a request's body may take to arrive."""
    conversations: int = 500
    """Kept for one visitor."""
    exchanges: int = 1000
    """In one conversation."""
    versions: int = 50
    """Of one reply, spoken again."""
    requests_a_minute: int = 240
    """From one client; 0 for no limit."""
    queue: int = 64
    """Requests that may wait for the model."""
    batch: int = 8
    """Requests that are answered together."""


@dataclass(frozen=True)
class Settings:
    """One service. Binding beyond this computer without an API key is an error."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 for any that is free."""
    models: tuple[str, ...] = (DEFAULT,)
    """Names of models that visitors may choose from; the first is used where none is named."""
    planning: tuple[str, ...] | None = None
    """Those of them that make plans and can be steered; None where that shows when they are loaded."""
    api_key: str | None = field(default=None, repr=False)
    store: str | None = None
    """Where conversations are kept: a URL of SQLite or PostgreSQL; None keeps none."""
    country: str | None = None
    """Whose help lines are shown: two letters, such as NZ."""
    origins: tuple[str, ...] = ()
    """Other sites whose pages may call this service; none by default."""
    hosts: tuple[str, ...] = ()
    """Further names this service is called by, such as a reverse proxy's."""
    heartbeat: float = 5.0
    """Seconds between signs of life while a reply is made."""
    gather: float = 0.02
    """Seconds that a request waits for others to be answered with."""
    fewest: int | None = 1
    """While several people wait, each reply is chosen from fewer, so that all are answered sooner: from so
    many at least. Of one there is no choice, and where it is filtered, a safe sentence is said. None: always
    from all."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.models:
            raise InputError("The service has no model.", "Name at least one.")
        if len(set(self.models)) != len(self.models):
            raise InputError("A model is named twice.", "Name each once.")
        if self.fewest is not None and self.fewest < 1:
            raise InputError(f"fewest is {self.fewest}.", "Give 1 or more.")
        if not 0 <= self.port <= 65535:
            raise InputError(f"The port is {self.port}.", "Give 1 to 65535, or 0 for any that is free.")
        if self.api_key is not None and (len(self.api_key) < SHORTEST_KEY or not _is_plain(self.api_key)):
            raise InputError(
                f"The API key has fewer than {SHORTEST_KEY} characters, or some that a header cannot hold.",
                "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        if self.api_key is None and not is_loopback(self.host):
            raise InputError(
                f"Everyone who reaches {self.host} could use this service: it has no API key.",
                "Give one with --api-key or LISTENWELL_API_KEY, or bind to 127.0.0.1.",
            )


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches an address; a name other than localhost counts as no."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def default_store() -> str:
    """The URL of the file where conversations are kept unless another place is named."""
    import platformdirs

    return f"sqlite:///{Path(platformdirs.user_data_dir('listenwell')) / 'conversations.sqlite'}"


def _is_plain(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key
