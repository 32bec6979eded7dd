import errno
import io
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.errors import InputError
from listenwell.files import disk_errors
from listenwell.retrieval import search as module
from listenwell.retrieval.pool import find_pool
from listenwell.retrieval.search import Exact, Faiss, PoolSearch
from tests.rankers.pool_fake import FakeSelector, vector

COUNT = 3000


def said(text, persona=()):
    return Dialogue((Turn("speaker", text),), personas=(Persona("listener", persona),) if persona else ())


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.txt"
    file.write_text("I am sorry.\nThat is great news!\nWhat happened to your dog?\nOh.\n")
    return find_pool(str(file))


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A pool over the limit, which is made small."""
    monkeypatch.setattr(module, "EXACT_LIMIT", 1000)
    file = tmp_path / "large.txt"
    file.write_text("".join(f"reply {number}\n" for number in range(COUNT)))
    return find_pool(str(file))


def test_exact_search_finds_the_greatest_products_and_of_equal_ones_the_first():
    vectors = np.array([[1, 0], [0, 1], [1, 0], [3, 0], [-1, 0], [1, 0]], np.float16)
    places, scores = Exact(vectors).find(np.array([2.0, 0.0]), 3)
    assert places.tolist() == [3, 0, 2]
    assert scores.tolist() == [6, 2, 2]
    assert Exact(vectors).find(np.array([0.0, 1.0]), 99)[0].tolist() == [1, 0, 2, 3, 4, 5]


def test_exact_search_in_blocks_finds_the_same(monkeypatch):
    vectors = np.stack([vector(str(number)) for number in range(500)])
    whole = Exact(vectors).find(vector("?"), 20)
    expected = np.argsort(-(vectors @ vector("?")), kind="stable")[:20]
    monkeypatch.setattr(module, "ROWS", 7)
    monkeypatch.setattr(module, "EXACT_LIMIT", 10)
    blocks = Exact(vectors).find(vector("?"), 20)
    assert whole[0].tolist() == blocks[0].tolist() == expected.tolist()
    np.testing.assert_allclose(whole[1], blocks[1], rtol=1e-6)


def test_the_best_of_the_quick_search_are_read_again_by_the_full_ranker(small):
    selector = FakeSelector()
    search = PoolSearch.open(selector, small)
    found = search.search(said("my dog died"), top=2, candidates=3)
    texts = list(small)
    first = sorted(texts, key=lambda text: -float(vector(text) @ vector("my dog died")))[:3]
    assert selector.read == [first]
    assert len(found) == 2
    full = dict(zip(first, selector.scores(said("my dog died"), first), strict=True))
    best = sorted(first, key=lambda text: -full[text])
    assert [reply.text for reply in found] == best[:2]
    assert [reply.score for reply in found] == [full[text] for text in best[:2]]
    for reply in found:
        assert texts[reply.index] == reply.text
        assert reply.first_score == pytest.approx(float(vector(reply.text) @ vector("my dog died")), abs=2e-3)


def test_the_persona_is_in_the_query(small):
    search = PoolSearch.open(FakeSelector(), small)
    plain, known = (search.search(said("hi", lines)) for lines in ((), ("I have a dog.",)))
    assert [reply.first_score for reply in plain] != [reply.first_score for reply in known]


def test_a_pool_smaller_than_what_is_asked_gives_all_of_it(small):
    assert len(PoolSearch.open(FakeSelector(), small).search(said("hi"), top=50)) == 4


def test_the_full_ranker_reads_no_fewer_than_are_shown(small):
    assert len(PoolSearch.open(FakeSelector(), small).search(said("hi"), top=3, candidates=1)) == 3


@pytest.mark.parametrize(("top", "candidates"), [(0, 100), (10, 0)])
def test_asking_for_nothing_is_an_error(small, top, candidates):
    with pytest.raises(InputError, match="Give 1 or more"):
        PoolSearch.open(FakeSelector(), small).search(said("hi"), top, candidates)


def test_a_small_pool_needs_no_library(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert PoolSearch.open(FakeSelector(), small).notices == ()


def test_without_the_library_every_vector_is_looked_at_and_that_is_said(large, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    search = PoolSearch.open(FakeSelector(), large)
    assert isinstance(search.nearest, Exact)
    assert "listenwell[pool]" in search.notices[0]
    assert search.search(said("reply 77"), top=1, candidates=5)[0].text.startswith("reply")


def recall(search):
    scan, found = Exact(search.index.vectors), []
    for number in range(40):
        query = vector(f"a question {number}")
        found.append(np.isin(scan.find(query, 100)[0], search.nearest.find(query, 100)[0]).mean())
    return float(np.mean(found))


def test_a_large_pool_is_searched_by_an_index_that_reaches_the_promised_recall(large):
    pytest.importorskip("faiss")
    search = PoolSearch.open(FakeSelector(), large)
    assert isinstance(search.nearest, Faiss)
    about = module.Lists.from_json((search.index.folder / "lists.json").read_bytes())
    assert about.recall >= 0.97 and about.lists == 128 and about.questions == 64
    assert 1 <= search.nearest.probes < about.lists
    assert recall(search) >= 0.95
    # What is found carries exact scores, in order.
    places, scores = search.nearest.find(vector("reply 77"), 10)
    assert places[0] == 77 and scores[0] == pytest.approx(1, abs=2e-3)
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)


def test_lists_that_hold_too_few_give_what_they_have(large):
    pytest.importorskip("faiss")
    nearest = PoolSearch.open(FakeSelector(), large).nearest
    nearest.probes = 1
    places, _ = nearest.find(vector("hm"), 500)
    assert 0 < len(places) < 500 and (places >= 0).all()


def test_the_index_is_built_once(large, monkeypatch):
    pytest.importorskip("faiss")
    first = PoolSearch.open(FakeSelector(), large)
    monkeypatch.setattr(module, "_built", None)
    second = PoolSearch.open(FakeSelector(), large)
    query = vector("hm")
    assert second.nearest.probes == first.nearest.probes
    assert second.nearest.find(query, 50)[0].tolist() == first.nearest.find(query, 50)[0].tolist()


@pytest.mark.parametrize("damage", ["cut", "noise", "bit", "gone", "about"])
def test_a_damaged_index_is_built_again(large, damage):
    pytest.importorskip("faiss")
    folder = PoolSearch.open(FakeSelector(), large).index.folder
    file = folder / "lists.faiss"
    whole = file.read_bytes()
    if damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif damage == "noise":
        file.write_bytes(bytes(len(whole)))
    elif damage == "bit":
        hidden_state = len(whole) // 2
        file.write_bytes(whole[:hidden_state] + bytes([whole[hidden_state] ^ 1]) + whole[hidden_state + 1 :])
    elif damage == "gone":
        file.unlink()
    else:
        (folder / "lists.json").write_text("{}")
    search = PoolSearch.open(FakeSelector(), large)
    assert isinstance(search.nearest, Faiss)
    assert file.read_bytes() == whole
    assert recall(search) >= 0.95


class Full(io.BytesIO):
    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


@contextmanager
def on_a_full_disk(path):
    with disk_errors(path):
        yield Full()


def test_a_full_disk_is_a_clear_error(large, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(module, "written_whole", on_a_full_disk)
    with pytest.raises(InputError, match="disk is full"):
        PoolSearch.open(FakeSelector(), large)
