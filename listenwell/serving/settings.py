"""The settings of a service; nothing is configured elsewhere."""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from listenwell.errors import InputError
from listenwell.generators import DEFAULT

SHORTEST_KEY = 16
"""Minimum length of an API key; a shorter one can be guessed."""
NOTICE = "This is a computer program, not a human or a therapist, and no replacement for help from people."


@dataclass(frozen=True)
class Limits:
    """Limits per request, per visitor and for the whole service."""

    body_bytes: int = 512 * 1024
    body_seconds: float = 30.0
    """Timeout for receiving a request body."""
    conversations: int = 500
    """Stored conversations per visitor."""
    exchanges: int = 1000
    """Exchanges per conversation."""
    versions: int = 50
    """Replies per exchange."""
    requests_a_minute: int = 240
    """Requests per minute and client; 0 for no limit."""
    queue: int = 64
    """Capacity of the request queue."""
    batch: int = 8
    """Largest batch."""


@dataclass(frozen=True)
class Settings:
    """Settings of one service. Binding to a public address without an API key is an error."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 for any that is free."""
    models: tuple[str, ...] = (DEFAULT,)
    """Names of the models that clients may select; the first is the default."""
    planning: tuple[str, ...] | None = None
    """The models that plan and can be steered; None if that is known only after loading."""
    api_key: str | None = field(default=None, repr=False)
    store: str | None = None
    """URL of the SQLite or PostgreSQL database for conversations; None stores nothing."""
    country: str | None = None
    """Country of the help lines, as two letters such as NZ."""
    origins: tuple[str, ...] = ()
    """Origins that may call this service from a browser (CORS)."""
    hosts: tuple[str, ...] = ()
    """Further host names of this service, such as that of a reverse proxy."""
    heartbeat: float = 5.0
    """Seconds between keep-alive events of a stream."""
    batch_window: float = 0.02
    """Seconds that a request waits for others to form a batch."""
    min_candidates: int | None = 1
    """Load shedding: under load, fewer candidates are generated per reply, but at least this many. None turns
    load shedding off."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.models:
            raise InputError("The service has no model.", "Name at least one.")
        if len(set(self.models)) != len(self.models):
            raise InputError("A model is named twice.", "Name each once.")
        if self.min_candidates is not None and self.min_candidates < 1:
            raise InputError(f"min_candidates is {self.min_candidates}.", "Give 1 or more.")
        if not 0 <= self.port <= 65535:
            raise InputError(f"The port is {self.port}.", "Give 1 to 65535, or 0 for any that is free.")
        if self.api_key is not None and (len(self.api_key) < SHORTEST_KEY or not _is_plain(self.api_key)):
            raise InputError(
                f"The API key has fewer than {SHORTEST_KEY} characters, or some that a header cannot hold.",
                "Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        if self.api_key is None and not is_loopback(self.host):
            raise InputError(
                f"Anyone who can reach {self.host} could use this service: it has no API key.",
                "Give one with --api-key or LISTENWELL_API_KEY, or bind to 127.0.0.1.",
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this computer only; of names only localhost counts."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def default_store() -> str:
    """URL of the default SQLite file."""
    import platformdirs

    return f"sqlite:///{Path(platformdirs.user_data_dir('listenwell')) / 'conversations.sqlite'}"


def _is_plain(key: str) -> bool:
    return key.isascii() and key.isprintable() and " " not in key
