"""The sample corpora stand where the real ones are looked for."""

from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "data"


@pytest.fixture
def samples(monkeypatch):
    monkeypatch.setenv("LISTENWELL_DATA", str(SAMPLES))
    return SAMPLES
