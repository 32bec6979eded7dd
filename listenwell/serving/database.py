"""Opens a database by its URL and applies the numbered migrations."""

import re
import time
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from listenwell.errors import InputError, MissingExtraError
from listenwell.files import disk_errors

MIGRATIONS = Path(__file__).parent / "migrations"
_NAME = re.compile(r"(\d{4})_\w+\.sql")
_LOCK = 7_146_573_821
"""Ours among PostgreSQL's advisory locks."""


def open_database(url: str, migrations: Path = MIGRATIONS) -> Engine:
    """Connect and migrate.

    Args:
        url: sqlite:///FILE, a plain file name, or postgresql://USER@HOST/DATABASE.
        migrations: a folder of NUMBER_NAME.sql files.
    """
    address = parse_url(url)
    if address.get_backend_name() == "sqlite":
        engine = _sqlite(address)
    else:
        try:
            # Errors must not log the values of a statement: users wrote them.
            engine = create_engine(address, hide_parameters=True, pool_pre_ping=True)
        except ModuleNotFoundError:
            raise MissingExtraError("psycopg", "postgres", "Storing conversations in PostgreSQL") from None
    try:
        migrate(engine, migrations)
    except SQLAlchemyError as error:
        engine.dispose()
        shown = address.render_as_string(hide_password=True)
        raise InputError(
            f"Conversations cannot be stored in {shown}: {type(error).__name__}.",
            "Check the address and that the database runs, or name another with --store.",
        ) from None
    return engine


def parse_url(url: str) -> URL:
    """The URL of a supported database; others are errors."""
    try:
        address = make_url(url if "://" in url else f"sqlite:///{Path(url).expanduser()}")
    except ArgumentError:
        raise InputError(
            "The store's URL cannot be read.", "Give a file name or a postgresql:// URL."
        ) from None
    if address.drivername in ("postgres", "postgresql"):
        address = address.set(drivername="postgresql+psycopg")
    if address.drivername not in ("sqlite", "postgresql+psycopg"):
        raise InputError(
            f"Conversations cannot be stored in {address.drivername!r}.",
            "Give a file name or a postgresql:// URL.",
        )
    if address.drivername == "sqlite" and address.database in (None, "", ":memory:"):
        raise InputError("The store's URL names no file.", "Name one, or use --no-store.")
    return address


def _sqlite(url: URL) -> Engine:
    file = Path(str(url.database))
    with disk_errors(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o600)  # readable by this user only
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": 30})

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: object) -> None:  # noqa: ANN401
        connection.isolation_level = None  # transactions start in _began below
        cursor = connection.cursor()
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",  # acknowledged data is on disk
            "foreign_keys = ON",
            "secure_delete = ON",  # deleted data is overwritten
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _began(connection: Connection) -> None:
        # Concurrent writers wait instead of failing halfway.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def migrate(engine: Engine, folder: Path = MIGRATIONS) -> int:
    """Apply the missing migrations in one transaction and return the newest number.

    A database with unknown, newer migrations is an error.
    """
    files = {int(match[1]): file for file in folder.iterdir() if (match := _NAME.fullmatch(file.name))}
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":  # two services that start at once
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        connection.execute(
            text(
                "CREATE TABLE IF NOT EXISTS migrations "
                "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied DOUBLE PRECISION NOT NULL)"
            )
        )
        done = set(connection.execute(text("SELECT number FROM migrations")).scalars())
        if done - files.keys():
            raise InputError(
                f"The store has migration {max(done - files.keys())}, which this version does not know.",
                "Use the newer listenwell that created it, or name another store with --store.",
            )
        for number in sorted(files.keys() - done):
            _apply(connection, number, files[number])
    return max(files, default=0)


def _apply(connection: Connection, number: int, file: Path) -> None:
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("--")]
    for statement in "\n".join(lines).split(";\n"):
        if statement.strip(" \n;"):
            connection.exec_driver_sql(statement)
    connection.execute(
        text("INSERT INTO migrations (number, name, applied) VALUES (:number, :name, :applied)"),
        {"number": number, "name": file.stem, "applied": time.time()},
    )
