import pytest

from listenwell.corpora import CORPORA
from listenwell.corpora.sampling import Sampling
from listenwell.errors import InputError
from listenwell.evaluation.outputs import read_given
from listenwell.evaluation.protocol import evaluate_given


@pytest.fixture
def own_file(tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"reply": "Oh no!", "reference": "I am sorry."}\n')
    return file


def given(file, system):
    return read_given(file, system, CORPORA.load("empathetic_dialogues")(), "test", Sampling(None, 0))


def test_a_released_systems_name_is_for_its_own_file(own_file):
    with pytest.raises(InputError, match="name of a released system"):
        given(own_file, "MoEL")
    assert given(own_file, "mine").system == "mine"


def test_a_file_with_its_own_references_claims_no_corpus(own_file, tiny_encoder):
    from listenwell.evaluation.embedder import Embedder

    result = evaluate_given(given(own_file, None), Embedder.load(tiny_encoder))
    assert (result.corpus, result.split, result.count) == ("the file's own", "–", 1)
