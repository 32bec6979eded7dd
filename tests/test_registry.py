import pytest

from listenwell.corpora import CORPORA
from listenwell.errors import UnknownNameError
from listenwell.generators import GENERATORS
from listenwell.registry import Registry


def test_an_entry_is_imported_only_when_asked_for():
    registry = Registry("thing", {"good": "collections:Counter", "bad": "no_such_module:X"})
    assert list(registry) == ["good", "bad"]
    assert registry.load("good").__name__ == "Counter"
    with pytest.raises(ModuleNotFoundError):
        registry.load("bad")


def test_a_wrong_name_gets_the_near_ones():
    with pytest.raises(UnknownNameError, match=r"no corpus named 'goemotion'.*'goemotions'"):
        CORPORA.load("goemotion")


@pytest.mark.parametrize("registry", [CORPORA, GENERATORS], ids=lambda r: r.kind)
def test_every_entry_loads_and_knows_its_name(registry):
    for name in registry:
        assert registry.load(name) is not None
        assert name in registry
    assert all(CORPORA.load(name).name == name for name in CORPORA)
