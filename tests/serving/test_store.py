import json
import sqlite3
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from listenwell.dialogue import Factors, Reply, Scored
from listenwell.errors import InputError, MissingExtraError
from listenwell.serving.api_errors import ApiError
from listenwell.serving.conversation import Version
from listenwell.serving.database import MIGRATIONS, migrate, open_database, parse_url
from listenwell.serving.settings import Limits
from listenwell.serving.store import Store

ANNA, BEN = "anna", "ben"
REPLY = Version(Reply("Well done!", "fake", 3, (Scored("proud", 0.5),), Factors(act="wishing")))
AGAIN = Version(Reply("How nice!", "fake", 4), Factors(act="wishing", mechanisms=()), "k1")


@pytest.fixture
def store(store_url):
    made = Store.open(store_url, Limits(conversations=3, exchanges=4, versions=3))
    yield made
    made.close()


def test_a_talk_is_kept_as_it_was(store):
    made = store.create(ANNA, "planned", ["I bake."])
    assert store.add_message(ANNA, made.id, "I won!") == 1
    assert store.add_reply(ANNA, made.id, 1, REPLY) == 1
    assert store.add_message(ANNA, made.id, "Thanks") == 2
    found = store.get(ANNA, made.id)
    assert (found.model, found.persona) == ("planned", ("I bake.",))
    assert [one.message for one in found.exchanges] == ["I won!", "Thanks"]
    assert found.exchanges[0].current_version == REPLY
    assert found.exchanges[1].current_version is None
    assert found.changed > found.created
    talk = found.dialogue()
    assert [turn.text for turn in talk.turns] == ["I won!", "Well done!", "Thanks"]
    assert talk.turns[1].notes == (("model", "fake"), ("seed", "3"))
    assert [turn.text for turn in found.dialogue(until=1).turns] == ["I won!"]
    assert [turn.text for turn in found.dialogue(most=2).turns] == ["Well done!", "Thanks"]


def test_several_replies_are_kept_and_one_counts(store):
    id = store.create(ANNA, None, []).id
    store.add_message(ANNA, id, "I won!")
    assert [store.add_reply(ANNA, id, 1, reply) for reply in (REPLY, AGAIN)] == [1, 2]
    assert store.get(ANNA, id).exchanges[0].current_version == AGAIN
    assert store.set_current(ANNA, id, 1, 1).exchanges[0].current_version == REPLY
    assert store.get(ANNA, id).exchanges[0].versions == (REPLY, AGAIN)
    for number, version in ((1, 3), (2, 1)):
        with pytest.raises(ApiError):
            store.set_current(ANNA, id, number, version)
    with pytest.raises(ApiError):
        store.add_reply(ANNA, id, 2, REPLY)


def test_a_message_sent_twice_under_its_name_is_kept_once(store):
    id = store.create(ANNA, None, []).id
    assert [store.add_message(ANNA, id, "hi", name) for name in ("k1", "k1", None, None, "k2")] == [
        1,
        1,
        2,
        3,
        4,
    ]
    assert len(store.get(ANNA, id).exchanges) == 4


def test_a_conversation_begun_twice_under_its_name_is_one(store):
    first = store.create(ANNA, None, ["I bake."], "begin-1")
    store.add_message(ANNA, first.id, "hi")
    again = store.create(ANNA, "other", [], "begin-1")
    assert (again.id, again.persona, len(again.exchanges)) == (first.id, ("I bake.",), 1)
    assert store.create(BEN, None, [], "begin-1").id != first.id
    store.create(ANNA, None, [], "begin-2")
    store.create(ANNA, None, [])
    assert store.create(ANNA, None, [], "begin-1").id == first.id  # there is no room for another
    store.delete(ANNA, first.id)
    assert store.create(ANNA, None, [], "begin-1").id != first.id


def test_a_reply_kept_twice_under_its_name_is_one_and_its_wish_is_exported(store):
    id = store.create(ANNA, None, []).id
    store.add_message(ANNA, id, "I won!")
    assert [store.add_reply(ANNA, id, 1, one) for one in (REPLY, AGAIN, AGAIN)] == [1, 2, 2]
    store.add_message(ANNA, id, "Thanks")
    assert store.add_reply(ANNA, id, 2, AGAIN) == 2  # the name is one of the conversation
    found = store.get(ANNA, id)
    assert [len(one.versions) for one in found.exchanges] == [2, 0]
    exchange, version = found.named("k1")
    assert (exchange.number, version) == (1, 2)
    assert found.named("k2") is None
    wish = json.loads(found.dialogue().turns[1].note("target"))
    assert wish == {"act": "wishing", "mechanisms": []}
    assert Factors.from_dict(wish) == AGAIN.target


def test_a_store_of_the_first_version_is_brought_along(store_url, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    first = MIGRATIONS / "0001_conversations.sql"
    (old / first.name).write_text(first.read_text())
    engine = open_database(store_url, old)
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO conversations VALUES ('c', 'anna', NULL, '[]', 1, 2)",
            "INSERT INTO exchanges VALUES ('c', 1, NULL, '\"hi\"', 1, 1)",
            """INSERT INTO replies VALUES ('c', 1, 1, '{"reply": "Hello.", "model": "m", "seed": 1}', 1)""",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    store = Store.open(store_url)
    assert store.get(ANNA, "c").exchanges[0].current_version == Version(Reply("Hello.", "m", 1))
    assert store.add_reply(ANNA, "c", 1, AGAIN) == 2
    store.close()


def test_nobody_reaches_what_is_not_theirs(store):
    id = store.create(ANNA, None, []).id
    store.add_message(ANNA, id, "I won!")
    for attempt in (
        lambda: store.get(BEN, id),
        lambda: store.add_message(BEN, id, "me too"),
        lambda: store.add_reply(BEN, id, 1, REPLY),
        lambda: store.set_current(BEN, id, 1, 1),
        lambda: store.change(BEN, id, persona=["I am Ben."]),
        lambda: store.delete(BEN, id),
    ):
        with pytest.raises(ApiError) as refused:
            attempt()
        assert refused.value.status == 404
    assert store.delete_all(BEN) == 0
    assert store.listed(BEN) == store.everything(BEN) == []
    assert len(store.get(ANNA, id).exchanges) == 1


def test_lists_begin_with_the_latest(store):
    first, second = store.create(ANNA, None, []), store.create(ANNA, None, [])
    store.add_message(ANNA, first.id, "x" * 200)
    found = [(one.id, count, words) for one, count, words in store.listed(ANNA)]
    assert found == [(first.id, 1, "x" * 80), (second.id, 0, "")]
    assert [one.id for one in store.everything(ANNA)] == [first.id, second.id]


def test_change_and_delete(store):
    id, other = store.create(ANNA, "a", ["I bake."]).id, store.create(ANNA, None, []).id
    assert store.change(ANNA, id, model="b").persona == ("I bake.",)
    assert store.change(ANNA, id, persona=[]).model == "b"
    store.add_message(ANNA, id, "I won!")
    store.add_reply(ANNA, id, 1, REPLY)
    store.delete(ANNA, id)
    with pytest.raises(ApiError):
        store.get(ANNA, id)
    assert store.delete_all(ANNA) == 1
    with store._engine.connect() as connection:
        for table in ("conversations", "exchanges", "replies"):
            assert connection.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar_one() == 0
    with pytest.raises(ApiError):
        store.get(ANNA, other)


def test_there_is_an_end_to_everything(store):
    ids = [store.create(ANNA, None, []).id for _ in range(3)]
    with pytest.raises(ApiError, match="409"):
        store.create(ANNA, None, [])
    store.create(BEN, None, [])
    for _ in range(4):
        store.add_message(ANNA, ids[0], "a")
    with pytest.raises(ApiError, match="409"):
        store.add_message(ANNA, ids[0], "a")
    for _ in range(3):
        store.add_reply(ANNA, ids[0], 1, REPLY)
    with pytest.raises(ApiError, match="409"):
        store.add_reply(ANNA, ids[0], 1, REPLY)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=()), min_size=1).filter(lambda said: said.strip()))
def test_any_text_comes_back(store, said):
    store.delete_all(ANNA)
    id = store.create(ANNA, None, [said]).id
    store.add_message(ANNA, id, said)
    store.add_reply(ANNA, id, 1, Version(Reply(said, "fake", 1)))
    found = store.get(ANNA, id)
    (exchange,) = found.exchanges
    assert (found.persona[0], exchange.message, exchange.current_version.reply.text) == (said, said, said)


def test_many_at_once_lose_nothing(store_url):
    store = Store.open(store_url)
    id = store.create(ANNA, None, []).id
    numbers, lock = [], threading.Lock()

    def talk():
        for _ in range(6):
            number = store.add_message(ANNA, id, "hi")
            store.add_reply(ANNA, id, number, REPLY)
            with lock:
                numbers.append(number)

    threads = [threading.Thread(target=talk) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 25))
    assert all(one.current_version == REPLY for one in store.get(ANNA, id).exchanges)
    store.close()


def test_a_store_is_there_again_after_it_was_closed(store_url):
    first = Store.open(store_url)
    id = first.create(ANNA, None, []).id
    first.close()
    second = Store.open(store_url)
    assert second.get(ANNA, id).id == id
    second.close()


def test_numbered_migrations_run_once_each_and_keep_what_is_there(store_url, tmp_path):
    folder = tmp_path / "steps"
    folder.mkdir()
    (folder / "0001_first.sql").write_text("-- a comment; with a semicolon\nCREATE TABLE a (x TEXT);\n")
    engine = open_database(store_url, folder)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO a VALUES ('kept')"))
    (folder / "0002_second.sql").write_text("ALTER TABLE a ADD COLUMN y INTEGER;\nUPDATE a SET y = 2;\n")
    (folder / "notes.txt").write_text("not a migration")
    assert migrate(engine, folder) == migrate(engine, folder) == 2
    with engine.connect() as connection:
        assert connection.execute(text("SELECT x, y FROM a")).all() == [("kept", 2)]
        done = connection.execute(text("SELECT number, name FROM migrations ORDER BY number")).all()
    assert done == [(1, "0001_first"), (2, "0002_second")]
    (folder / "0003_broken.sql").write_text("CREATE TABLE b (x TEXT);\nCREATE NONSENSE;\n")
    with pytest.raises(Exception, match="NONSENSE"):
        migrate(engine, folder)
    with engine.connect() as connection, pytest.raises(Exception, match="b"):
        connection.execute(text("SELECT * FROM b"))  # whole or not at all
    (folder / "0003_broken.sql").unlink()
    (folder / "0002_second.sql").unlink()
    with pytest.raises(InputError, match="migration 2, which this version does not know"):
        migrate(engine, folder)
    engine.dispose()


def test_our_migrations_are_numbered_without_gaps():
    numbers = sorted(int(file.name[:4]) for file in MIGRATIONS.glob("*.sql"))
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_sqlite_is_private_and_durable(tmp_path):
    file = tmp_path / "deep" / "talks.sqlite"
    store = Store.open(str(file))
    with store._engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.close()


def test_what_is_deleted_is_gone_from_the_disk(tmp_path):
    store = Store.open(str(tmp_path / "talks.sqlite"))
    id = store.create(ANNA, None, []).id
    store.add_message(ANNA, id, "zebrafish")
    assert any(b"zebrafish" in file.read_bytes() for file in tmp_path.iterdir())
    store.delete(ANNA, id)
    assert not any(b"zebrafish" in file.read_bytes() for file in tmp_path.iterdir())
    store.close()


@pytest.mark.parametrize(
    "url", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "://", "postgresql+asyncpg://x/y", "http://x"]
)
def test_other_stores_are_refused(url):
    with pytest.raises(InputError):
        parse_url(url)


def test_a_plain_name_is_a_file_and_postgres_has_one_driver():
    assert parse_url("a/b.sqlite").render_as_string() == "sqlite:///a/b.sqlite"
    assert parse_url("postgres://u:p@h/d").drivername == "postgresql+psycopg"


def test_a_database_that_does_not_answer_is_told_without_its_password(tmp_path):
    with pytest.raises(InputError) as refused:
        Store.open("postgresql://u:geheim@127.0.0.1:1/d")
    assert "cannot be stored" in str(refused.value)
    assert "geheim" not in str(refused.value)
    (tmp_path / "file").write_text("this is no database, however long it may be")
    with pytest.raises(InputError, match="cannot be stored"):
        Store.open(str(tmp_path / "file"))
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError):
        Store.open(str(tmp_path / "folder"))


def test_a_missing_driver_is_told_with_its_name(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match="postgres"):
        Store.open("postgresql://u@127.0.0.1:1/d")


def test_the_default_store_is_in_the_data_folder(monkeypatch):
    from listenwell.serving.settings import default_store

    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert Path(parse_url(default_store()).database).name == "conversations.sqlite"
    assert sqlite3.sqlite_version_info >= (3, 35)
