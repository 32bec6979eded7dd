"""The store of conversations; each visitor sees their own only.

Every method is one transaction; when it returns, its changes are on disk.
"""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, CursorResult, Engine, RowMapping, text
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
                if known := _run(connection, statement, visitor=visitor, name=name).scalar():
                    return _read(connection, visitor, known)
            statement = "SELECT COUNT(*) FROM conversations WHERE visitor = :visitor"
            count = _run(connection, statement, visitor=visitor).scalar_one()
            if count >= self._limits.conversations:
                problem = f"You have {count} conversations. Delete one of them first."
                raise ApiError(409, "too_many_conversations", problem)
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
        statement = (
            "SELECT c.*, (SELECT COUNT(*) FROM exchanges e WHERE e.conversation = c.id) AS count, "
            "(SELECT said FROM exchanges e WHERE e.conversation = c.id AND e.number = 1) AS first "
            "FROM conversations c WHERE visitor = :visitor ORDER BY changed DESC, id"
        )
        with self._engine.connect() as connection:
            rows = _run(connection, statement, visitor=visitor).mappings().all()
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
        statement = "SELECT id FROM conversations WHERE visitor = :visitor ORDER BY created, id"
        with self._engine.connect() as connection:
            ids = _run(connection, statement, visitor=visitor).scalars().all()
            return [_read(connection, visitor, id) for id in ids]

    def change(
        self, visitor: str, id: str, persona: Sequence[str] | None = None, model: str | None = None
    ) -> Conversation:
        """Set another persona or model; None keeps the current one."""
        with self._engine.begin() as connection:
            _own(connection, visitor, id)
            _run(
                connection,
                "UPDATE conversations SET persona = COALESCE(:persona, persona), "
                "model = COALESCE(:model, model), changed = :now WHERE id = :id",
                persona=None if persona is None else dumps(list(persona)),
                model=model,
                now=time.time(),
                id=id,
            )
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
            statement = "DELETE FROM conversations WHERE visitor = :visitor"
            count = _run(connection, statement, visitor=visitor).rowcount
        self._wipe()
        return count

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
            statement = "SELECT number FROM exchanges WHERE conversation = :id AND name = :name"
            known: int | None = _run(connection, statement, id=id, name=name).scalar()
            if known is not None:
                return known
            statement = "SELECT COALESCE(MAX(number), 0) FROM exchanges WHERE conversation = :id"
            last: int = _run(connection, statement, id=id).scalar_one()
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
            return last + 1

    def add_reply(self, visitor: str, id: str, number: int, added: Version) -> int:
        """Store a reply, make it the current one of its exchange, and return its version number.

        A reply that was stored under the same client key before is not stored again.
        """
        with self._engine.begin() as connection:
            _own(connection, visitor, id, lock=not self.is_file)
            statement = "SELECT version FROM replies WHERE conversation = :id AND name = :name"
            known: int | None = _run(connection, statement, id=id, name=added.name).scalar()
            if known is not None:
                return known
            statement = (
                "SELECT COALESCE(MAX(version), 0) FROM replies WHERE conversation = :id AND number = :number"
            )
            last: int = _run(connection, statement, id=id, number=number).scalar_one()
            if last >= self._limits.versions:
                problem = f"This message has {last} replies already. Send a new message."
                raise ApiError(409, "too_many_versions", problem)
            try:
                _run(
                    connection,
                    "INSERT INTO replies (conversation, number, version, name, want, reply, created) "
                    "VALUES (:id, :number, :version, :name, :target, :reply, :now)",
                    id=id,
                    number=number,
                    version=last + 1,
                    name=added.name,
                    target=added.target.to_json() if added.target else None,
                    reply=dumps(added.reply.to_dict()),
                    now=time.time(),
                )
            except IntegrityError:
                raise _unknown() from None
            _set_current(connection, id, number, last + 1)
            return last + 1

    def set_current(self, visitor: str, id: str, number: int, version: int) -> Conversation:
        """Continue from another reply."""
        with self._engine.begin() as connection:
            _own(connection, visitor, id)
            _set_current(connection, id, number, version)
            return _read(connection, visitor, id)

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


def _own(connection: Connection, visitor: str, id: str, lock: bool = False) -> RowMapping:
    """The conversation's row; with a lock, other writers wait (SQLite has one writer anyway)."""
    statement = "SELECT * FROM conversations WHERE id = :id AND visitor = :visitor"
    result = _run(connection, f"{statement} FOR UPDATE" if lock else statement, id=id, visitor=visitor)
    row = result.mappings().first()
    if row is None:
        raise _unknown()
    return row


def _read(connection: Connection, visitor: str, id: str) -> Conversation:
    conversation = _conversation(_own(connection, visitor, id))
    versions: dict[int, list[Version]] = {}
    statement = "SELECT * FROM replies WHERE conversation = :id ORDER BY number, version"
    for row in _run(connection, statement, id=id).mappings():
        target = Factors.from_json(row["want"]) if row["want"] else None
        version = Version(Reply.from_json(row["reply"]), target, row["name"])
        versions.setdefault(row["number"], []).append(version)
    statement = "SELECT * FROM exchanges WHERE conversation = :id ORDER BY number"
    exchanges = tuple(
        Exchange(
            row["number"],
            json.loads(row["said"]),
            row["created"],
            tuple(versions.get(row["number"], ())),
            row["current_version"],
        )
        for row in _run(connection, statement, id=id).mappings()
    )
    return replace(conversation, exchanges=exchanges)


def _conversation(row: RowMapping) -> Conversation:
    persona = tuple(json.loads(row["persona"]))
    return Conversation(row["id"], row["model"], persona, row["created"], row["changed"])


def _set_current(connection: Connection, id: str, number: int, version: int) -> None:
    result = _run(
        connection,
        "UPDATE exchanges SET current_version = :version WHERE conversation = :id AND number = :number "
        "AND EXISTS (SELECT 1 FROM replies "
        "WHERE conversation = :id AND number = :number AND version = :version)",
        id=id,
        number=number,
        version=version,
    )
    if not result.rowcount:
        raise _unknown()
    _touch(connection, id)


def _touch(connection: Connection, id: str) -> None:
    _run(connection, "UPDATE conversations SET changed = :now WHERE id = :id", now=time.time(), id=id)


def _run(connection: Connection, statement: str, **values: object) -> CursorResult[Any]:
    return connection.execute(text(statement), values)
