import secrets

import pytest
from sqlalchemy import create_engine
from starlette.testclient import TestClient

from listenwell.serving.database import parse_url
from tests.serving.fake import fake_app, fake_settings, wait_until
from tests.serving.postgres import postgres


@pytest.fixture
def make_client(tmp_path):
    """A client of an application with a fake listener; closed at the end."""
    opened = []

    def make(app=None, base_url="http://localhost", kept=False, **settings):
        settings = {"store": f"sqlite:///{tmp_path}/talks.sqlite" if kept else None} | settings
        app = app or fake_app(fake_settings(**settings))
        client = TestClient(app, base_url=base_url, raise_server_exceptions=False)
        opened.append(client)
        client.__enter__()
        wait_until(lambda: app.state.service.models.state("fake") == "ready")
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(make_client):
    """One that keeps nothing."""
    return make_client()


@pytest.fixture
def keeping(make_client):
    """One that keeps conversations."""
    return make_client(kept=True)


@pytest.fixture(scope="session")
def postgres_url():
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store_url(request, tmp_path):
    """Both kinds of database, each empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/talks.sqlite"
    url = request.getfixturevalue("postgres_url")
    name = f"test_{secrets.token_hex(6)}"
    engine = create_engine(parse_url(url))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    return f"{url}?options=-csearch_path%3D{name}"
