"""The store of conversations; each visitor sees their own only.

Every method is one transaction; when it returns, its changes are on disk.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import IntegrityError

from listenwell.dialogue import Factors, Reply
from listenwell.serialization import dumps
from listenwell.serving.api_errors import ApiError
from listenwell.serving.conversation import Conversation, Exchange, Version
from listenwell.serving.database import open_database
from listenwell.serving.settings import Limits

BEGINS = 80
"""Characters of the first message in a list of conversations."""


class Store:
    """The conversations of all visitors; `visitor` is the hash that `security.owner_of` computes of a token.

    Args:
        engine: a migrated database.
        limits: per visitor.
    """

    def __init__(self, engine: Engine, limits: Limits | None = None) -> None:
        self._engine, self._limits = engine, limits or Limits()
        self.is_file = engine.dialect.name == "sqlite"

    @classmethod
    def open(cls, url: str, limits: Limits | None = None) -> "Store":
        """Open the SQLite or PostgreSQL database of a URL."""
        return cls(open_database(url), limits)

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def create(
        self, visitor: str, model: str | None, persona: Sequence[str], name: str | None = None
    ) -> Conversation:
        """Create a conversation, or return the visitor's conversation with this client key."""
        now = time.time()
        conversation = Conversation(secrets.token_urlsafe(16), model, tuple(persona), now, now)
        with self._engine.begin() as connection:
            if name is not None:
                self._lock(connection, visitor)
                statement = "SELECT id FROM conversations WHERE visitor = :visitor AND name = :name"
                if known := _rows(connection, statement, visitor=visitor, name=name):
                    return _read(connection, visitor, known[0]["id"])
            count = _scalar(connection, "SELECT COUNT(*) FROM conversations WHERE visitor = :v", v=visitor)
            if count >= self._limits.conversations:
                raise ApiError(
                    409,
                    "too_many_conversations",
                    f"You have {count} conversations. Delete one of them first.",
                )
            _run(
                connection,
                "INSERT INTO conversations (id, visitor, name, model, persona, created, changed) "
                "VALUES (:id, :visitor, :name, :model, :persona, :now, :now)",
                id=conversation.id,
                visitor=visitor,
                name=name,
                model=model,
                persona=dumps(list(persona)),
                now=now,
            )
        return conversation

    def listed(self, visitor: str) -> list[tuple[Conversation, int, str]]:
        """A visitor's conversations, the latest first: each without exchanges, their count, its beginning."""
        with self._engine.connect() as connection:
            rows = _rows(
                connection,
                "SELECT c.*, (SELECT COUNT(*) FROM exchanges e WHERE e.conversation = c.id) AS count, "
                "(SELECT said FROM exchanges e WHERE e.conversation = c.id AND e.number = 1) AS first "
                "FROM conversations c WHERE visitor = :visitor ORDER BY changed DESC, id",
                visitor=visitor,
            )
        return [
            (_conversation(row), row["count"], json.loads(row["first"])[:BEGINS] if row["first"] else "")
            for row in rows
        ]

    def get(self, visitor: str, id: str) -> Conversation:
        """A conversation with its exchanges; 404 if it is not the visitor's."""
        with self._engine.connect() as connection:
            return _read(connection, visitor, id)

    def everything(self, visitor: str) -> list[Conversation]:
        """All of a visitor's conversations, the oldest first."""
        with self._engine.connect() as connection:
            ids = _rows(
                connection,
                "SELECT id FROM conversations WHERE visitor = :visitor ORDER BY created, id",
                visitor=visitor,
            )
            return [_read(connection, visitor, row["id"]) for row in ids]

    def change(
        self, visitor: str, id: str, persona: Sequence[str] | None = None, model: str | None = None
    ) -> Conversation:
        """Set another persona or model; None keeps the current one."""
        with self._engine.begin() as connection:
            _own(connection, visitor, id)
            if persona is not None:
                statement = "UPDATE conversations SET persona = :persona WHERE id = :id"
                _run(connection, statement, persona=dumps(list(persona)), id=id)
            if model is not None:
                _run(connection, "UPDATE conversations SET model = :model WHERE id = :id", model=model, id=id)
            _touch(connection, id)
            return _read(connection, visitor, id)

    def delete(self, visitor: str, id: str) -> None:
        """Delete a conversation; 404 if it is not the visitor's."""
        with self._engine.begin() as connection:
            _own(connection, visitor, id)
            _run(connection, "DELETE FROM conversations WHERE id = :id", id=id)
        self._wipe()

    def delete_all(self, visitor: str) -> int:
        """Delete all conversations of a visitor and return their number."""
        with self._engine.begin() as connection:
            count = _scalar(connection, "SELECT COUNT(*) FROM conversations WHERE visitor = :v", v=visitor)
            _run(connection, "DELETE FROM conversations WHERE visitor = :v", v=visitor)
        self._wipe()
        return int(count)

    def add_message(self, visitor: str, id: str, message: str, name: str | None = None) -> int:
        """Store a message as a new exchange and return its number.

        Args:
            visitor: the owner of the conversation.
            id: of the conversation.
            message: the text.
            name: the client's key; a message stored under it before is not stored again.
        """
        with self._engine.begin() as connection:
            _own(connection, visitor, id, lock=not self.is_file)
            known = _rows(
                connection,
                "SELECT number FROM exchanges WHERE conversation = :id AND name = :name",
                id=id,
                name=name,
            )
            if name is not None and known:
                return int(known[0]["number"])
            last = _scalar(
                connection, "SELECT COALESCE(MAX(number), 0) FROM exchanges WHERE conversation = :id", id=id
            )
            if last >= self._limits.exchanges:
                raise ApiError(409, "conversation_full", "This conversation is full. Start a new one.")
            _run(
                connection,
                "INSERT INTO exchanges (conversation, number, name, said, created) "
                "VALUES (:id, :number, :name, :said, :now)",
                id=id,
                number=last + 1,
                name=name,
                said=dumps(message),
                now=time.time(),
            )
            _touch(connection, id)
            return int(last) + 1

    def add_reply(self, visitor: str, id: str, number: int, added: Version) -> int:
        """Store a reply, make it the current one of its exchange, and return its version number.

        A reply that was stored under the same client key before is not stored again.
        """
        with self._engine.begin() as connection:
            _own(connection, visitor, id, lock=not self.is_file)
            statement = "SELECT version FROM replies WHERE conversation = :id AND name = :name"
            known = _rows(connection, statement, id=id, name=added.name)
            if added.name is not None and known:
                return int(known[0]["version"])
            last = _scalar(
                connection,
                "SELECT COALESCE(MAX(version), 0) FROM replies WHERE conversation = :id AND number = :number",
                id=id,
                number=number,
            )
            if last >= self._limits.versions:
                raise ApiError(
                    409, "too_many_versions", f"This message has {last} replies already. Send a new message."
                )
            try:
                _run(
                    connection,
                    "INSERT INTO replies (conversation, number, version, name, want, reply, created) "
                    "VALUES (:id, :number, :version, :name, :want, :reply, :now)",
                    id=id,
                    number=number,
                    version=last + 1,
                    name=added.name,
                    want=added.target.to_json() if added.target else None,
                    reply=dumps(added.reply.to_dict()),
                    now=time.time(),
                )
            except IntegrityError:
                raise _unknown() from None
            self._set_current(connection, id, number, int(last) + 1)
            return int(last) + 1

    def set_current(self, visitor: str, id: str, number: int, version: int) -> Conversation:
        """Continue from another reply."""
        with self._engine.begin() as connection:
            _own(connection, visitor, id)
            self._set_current(connection, id, number, version)
            return _read(connection, visitor, id)

    def _set_current(self, connection: Connection, id: str, number: int, version: int) -> None:
        count = _scalar(
            connection,
            "SELECT COUNT(*) FROM replies "
            "WHERE conversation = :id AND number = :number AND version = :version",
            id=id,
            number=number,
            version=version,
        )
        if not count:
            raise _unknown()
        _run(
            connection,
            "UPDATE exchanges SET current_version = :version WHERE conversation = :id AND number = :number",
            id=id,
            number=number,
            version=version,
        )
        _touch(connection, id)

    def _lock(self, connection: Connection, visitor: str) -> None:
        """Serialize a visitor's requests for a new conversation; SQLite has one writer anyway."""
        if not self.is_file:
            _run(connection, "SELECT pg_advisory_xact_lock(hashtextextended(:visitor, 0))", visitor=visitor)

    def _wipe(self) -> None:
        """Remove deleted text from SQLite's write-ahead log."""
        if self.is_file:
            connection = self._engine.raw_connection()
            try:
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()


def _unknown() -> ApiError:
    return ApiError(404, "not_found", "There is no such conversation, exchange or reply.")


def _own(connection: Connection, visitor: str, id: str, lock: bool = False) -> Mapping[str, Any]:
    """The conversation's row; with a lock, other writers wait (SQLite has one writer anyway)."""
    statement = "SELECT * FROM conversations WHERE id = :id AND visitor = :visitor"
    rows = _rows(connection, f"{statement} FOR UPDATE" if lock else statement, id=id, visitor=visitor)
    if not rows:
        raise _unknown()
    return rows[0]


def _read(connection: Connection, visitor: str, id: str) -> Conversation:
    conversation = _conversation(_own(connection, visitor, id))
    versions: dict[int, list[Version]] = {}
    for row in _rows(
        connection, "SELECT * FROM replies WHERE conversation = :id ORDER BY number, version", id=id
    ):
        target = Factors.from_json(row["want"]) if row["want"] else None
        version = Version(Reply.from_json(row["reply"]), target, row["name"])
        versions.setdefault(row["number"], []).append(version)
    exchanges = tuple(
        Exchange(
            row["number"],
            json.loads(row["said"]),
            row["created"],
            tuple(versions.get(row["number"], ())),
            row["current_version"],
        )
        for row in _rows(
            connection, "SELECT * FROM exchanges WHERE conversation = :id ORDER BY number", id=id
        )
    )
    return replace(conversation, exchanges=exchanges)


def _conversation(row: Mapping[str, Any]) -> Conversation:
    persona = tuple(json.loads(row["persona"]))
    return Conversation(row["id"], row["model"], persona, row["created"], row["changed"])


def _touch(connection: Connection, id: str) -> None:
    _run(connection, "UPDATE conversations SET changed = :now WHERE id = :id", now=time.time(), id=id)


def _run(connection: Connection, statement: str, **values: object) -> None:
    connection.execute(text(statement), values)


def _rows(connection: Connection, statement: str, **values: object) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(text(statement), values).mappings()]


def _scalar(connection: Connection, statement: str, **values: object) -> Any:  # noqa: ANN401
    return connection.execute(text(statement), values).scalar_one()
