from itertools import product
from shutil import copytree

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from listenwell import checkpoint
from listenwell.dialogue import Dialogue, Persona, Turn
from listenwell.errors import CheckpointError, InputError
from listenwell.rankers.config import BiSettings, CobertSettings, RankerConfig
from listenwell.rankers.inputs import NOTHING
from listenwell.rankers.model import load_ranker
from listenwell.rankers.onnx_ranker import (
    ONNX_RANKERS,
    OnnxBiEncoder,
    OnnxCoBERT,
    OnnxCrossEncoder,
    OnnxRanker,
    load_onnx_ranker,
    runs_on_onnx_ranker,
)
from listenwell.rankers.ranker import Ranker
from listenwell.rankers.scorer import RankerScorer
from listenwell.runtime.engines import ONNX
from tests.annotators.no_torch import run_without_torch
from tests.rankers.tiny_rankers import REPLIES, TALKS, keep_ranker, texts, tiny_ranker

pytestmark = pytest.mark.usefixtures("installed_encoder")
MANY = [
    *TALKS,
    Dialogue(
        (Turn("a", "i am so sad ! what happened to you ?"), Turn("b", "!"), Turn("a", "my dog died")),
        listener="b",
        personas=(Persona("b", ("good luck", "i got the new job", "so sorry")), Persona("a", ("i am sad",))),
    ),
]
"""Contexts of one turn and of three; two have a persona, two have none."""
MORE = [*REPLIES, "!", "so happy for you, that is the best new job ever !", "i am sorry"]
HOPS = [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (0, 1, 2), (0, 1, 2, 3)]
COBERTS = [
    *(CobertSettings(hops, "max") for hops in HOPS),
    *(
        CobertSettings(hops, pooling, weighted)
        for hops, pooling, weighted in product([(1,), (0, 1, 2)], ["mean", "both", "max"], [True, False])
    ),
    CobertSettings((0, 1, 2), "max", weighted=True, vectors=0.5, among=32),  # the shipped one's
    CobertSettings((3,), weighted=True),
    *(CobertSettings((0, 1, 2), weighted=weighted, joint=True) for weighted in (True, False)),
    CobertSettings((0,), joint=True),
]


def both(encoder, folder, **settings):
    """The same ranker on both engines, exact, and what makes texts."""
    import torch

    ranker, _ = tiny_ranker(encoder, **settings)
    with torch.no_grad():
        for name in ("scale", "weights", "sharpness"):  # learned ones are not where they began
            if getattr(ranker, name, None) is not None:
                getattr(ranker, name).add_(torch.randn_like(getattr(ranker, name)), alpha=0.1)
    kept = keep_ranker(ranker, folder)
    (first, inputs), (second, its_own) = load_ranker(kept), load_onnx_ranker(kept, precision="fp32")
    for one, other in zip(texts(inputs, MANY, MORE), texts(its_own, MANY, MORE), strict=True):
        assert [text.tokens.tolist() for text in one] == [text.tokens.tolist() for text in other]
    return first, second, texts(inputs, MANY, MORE)


def same(found, wanted):
    assert found.dtype == wanted.dtype == np.float32 and wanted.std() > 1e-3
    np.testing.assert_allclose(found, wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "settings", COBERTS, ids=lambda one: f"{one.hops} {one.pooling} {one.weighted} {one.joint}"
)
def test_cobert_scores_as_with_torch(tiny_encoder, tmp_path, settings):
    ranker, onnx, (contexts, personas, replies) = both(tiny_encoder, tmp_path / "kept", cobert=settings)
    assert type(onnx) is OnnxCoBERT and onnx.gives_vectors == ranker.gives_vectors
    wanted = ranker.score_texts(contexts, personas, replies)
    same(onnx.score_texts(contexts, personas, replies), wanted)
    nobody = [NOTHING] * len(contexts)
    alone = ranker.score_texts(contexts, nobody, replies)
    assert np.abs(alone - wanted).max() > 1e-3  # personas matter
    same(onnx.score_texts(contexts, nobody, replies), alone)
    same(onnx.reply_vectors(replies), ranker.reply_vectors(replies))
    same(onnx.context_vectors(contexts, personas), ranker.context_vectors(contexts, personas))
    same(onnx.context_vectors(contexts, nobody), ranker.context_vectors(contexts, nobody))


@pytest.mark.parametrize("backbone", ["pretrained", "transformer", "words"])
@pytest.mark.parametrize("cosine", [True, False])
def test_a_bi_encoder_scores_as_with_torch(tiny_encoder, tmp_path, backbone, cosine):
    settings = {"model": "bi", "backbone": backbone, "bi": BiSettings(cosine)}
    ranker, onnx, (contexts, personas, replies) = both(tiny_encoder, tmp_path / "kept", **settings)
    assert type(onnx) is OnnxBiEncoder and onnx.gives_vectors and onnx.vector_width == ranker.vector_width
    same(onnx.score_texts(contexts, personas, replies), ranker.score_texts(contexts, personas, replies))
    same(onnx.reply_vectors(replies), ranker.reply_vectors(replies))
    same(onnx.context_vectors(contexts, personas), ranker.context_vectors(contexts, personas))


@pytest.mark.parametrize("backbone", ["pretrained", "transformer", "words"])
def test_a_cross_encoder_scores_as_with_torch(tiny_encoder, tmp_path, backbone):
    ranker, onnx, (contexts, personas, replies) = both(
        tiny_encoder, tmp_path / "kept", model="cross", backbone=backbone
    )
    assert type(onnx) is OnnxCrossEncoder and not onnx.gives_vectors
    wanted = ranker.score_texts(contexts, personas, replies)
    same(onnx.score_texts(contexts, personas, replies), wanted)
    nobody = [NOTHING] * len(contexts)
    same(onnx.score_texts(contexts, nobody, replies), ranker.score_texts(contexts, nobody, replies))
    for row, column in product(range(len(contexts)), range(len(replies))):
        alone = onnx.score_texts(contexts[row : row + 1], personas[row : row + 1], [replies[column]])
        assert alone[0, 0] == pytest.approx(wanted[row, column], rel=1e-4, abs=1e-4)  # as alone
    for ask in (lambda: onnx.reply_vectors(replies), lambda: onnx.context_vectors(contexts, personas)):
        with pytest.raises(CheckpointError, match="gives no vectors for large pools"):
            ask()


@pytest.mark.parametrize("model", ONNX_RANKERS)
@pytest.mark.parametrize("seed", range(3))
def test_with_an_adapter_too(tiny_encoder, tmp_path, model, seed):
    ranker, onnx, given = both(tiny_encoder, tmp_path / "kept", model=model, lora=True, seed=seed)
    same(onnx.score_texts(*given), ranker.score_texts(*given))


@pytest.mark.parametrize("backbone", ["transformer", "words"])
def test_cobert_on_every_body(tiny_encoder, tmp_path, backbone):
    ranker, onnx, given = both(tiny_encoder, tmp_path / "kept", backbone=backbone)
    same(onnx.score_texts(*given), ranker.score_texts(*given))
    assert onnx.score_texts(*given).shape == (len(MANY), len(MORE))


def test_no_neighbour_and_no_group_changes_a_score(tiny_encoder, tmp_path, monkeypatch):
    _, onnx, (contexts, personas, replies) = both(
        tiny_encoder, tmp_path / "kept", cobert=CobertSettings((0, 1, 2, 3), "both", weighted=True)
    )
    wanted = onnx.score_texts(contexts, personas, replies)
    for row, column in product(range(len(contexts)), range(len(replies))):
        alone = onnx.score_texts(contexts[row : row + 1], personas[row : row + 1], [replies[column]])
        assert alone[0, 0] == pytest.approx(wanted[row, column], abs=1e-4)
    for tokens in (1, 20, 50):
        monkeypatch.setattr("listenwell.rankers.onnx_cobert.REPLY_TOKENS", tokens)
        same(onnx.score_texts(contexts, personas, replies), wanted)


def test_equal_texts_are_encoded_once_and_all_are_counted(tiny_encoder, tmp_path, monkeypatch):
    _, onnx, (*_, replies) = both(tiny_encoder, tmp_path / "kept")
    encoded, advanced, run = [], [], onnx.encoder.run

    def counting(batch, outputs):
        encoded.append(batch.segments.max())
        return run(batch, outputs)

    monkeypatch.setattr(onnx.encoder, "run", counting)
    vectors = onnx.reply_vectors([*replies, *replies, NOTHING], advanced.append)
    assert sum(encoded) == len(set(MORE)) and sum(advanced) == len(vectors) == 2 * len(MORE) + 1
    np.testing.assert_array_equal(vectors[0], vectors[len(MORE)])
    assert not vectors[-1].any()
    # The same words of the other side are another text.
    encoded.clear()
    other = type(replies[0])(replies[0].tokens, 1 - replies[0].types, replies[0].parts)
    onnx.reply_vectors([replies[0], other])
    assert sum(encoded) == 2


@pytest.mark.parametrize("model", ONNX_RANKERS)
def test_nothing_asked_nothing_found(tiny_encoder, tmp_path, model):
    _, onnx, (contexts, personas, replies) = both(tiny_encoder, tmp_path / "kept", model=model)
    assert onnx.score_texts(contexts, personas, []).shape == (len(MANY), 0)
    assert onnx.score_texts([], [], replies).shape == (0, len(MORE))


def test_only_what_can_do_without_torch_does(tiny_encoder, tmp_path):
    for model in ("poly", "dam", "memnet"):
        assert not runs_on_onnx_ranker(RankerConfig(model=model))
        folder = keep_ranker(tiny_ranker(tiny_encoder, model)[0], tmp_path / model)
        chosen = Ranker.load(folder)
        assert chosen.key == Ranker.load(folder, engine="torch").key
        assert not isinstance(chosen.scorer.ranker, OnnxRanker)
        with pytest.raises(InputError, match=rf"The ranker {model} does not run on.*listenwell\[train\]"):
            Ranker.load(folder, engine="onnx")
    assert all(runs_on_onnx_ranker(RankerConfig(model=model)) for model in ONNX_RANKERS)


def test_a_selector_takes_onnxruntime_and_a_result_torch(tiny_encoder, tmp_path):
    folder = keep_ranker(tiny_ranker(tiny_encoder)[0], tmp_path / "kept")
    chosen = Ranker.load(folder)
    assert isinstance(chosen.scorer.ranker, OnnxRanker)
    assert not isinstance(RankerScorer.load(folder).ranker, OnnxRanker)
    exact, rounded = (Ranker.load(folder, precision=precision) for precision in ("fp32", "int8"))
    assert chosen.key == exact.key
    torch_keys = {Ranker.load(folder, engine="torch", precision=name).key for name in ("fp32", "int8")}
    keys = {exact.key, rounded.key, *torch_keys}
    assert len(torch_keys) == 1 and len(keys) == 3  # vectors of pools are kept by them
    assert (
        RankerScorer.load(copytree(folder, tmp_path / "copy"), engine=ONNX, precision="int8").key
        == rounded.key
    )
    wanted = RankerScorer.load(folder).score(MANY, MORE)
    same(exact.scorer.score(MANY, MORE), wanted)
    found = rounded.scorer.score(MANY, MORE)
    assert 0 < np.abs(found - wanted).max() < 0.2 * np.abs(wanted).max()
    own = RankerScorer.load(folder, tiny_encoder, ONNX, "int8")
    np.testing.assert_array_equal(own.score(MANY, MORE), found)
    assert own.key not in keys


def test_what_cannot_be_used_is_named(tiny_encoder, tmp_path):
    folder = keep_ranker(
        tiny_ranker(tiny_encoder, lora=True, cobert=CobertSettings(weighted=True))[0], tmp_path / "kept"
    )
    with checkpoint.writing(tmp_path / "half", "ranker") as place:
        for name in ("adapter_config.json", "adapter_model.safetensors", "config.json"):
            (place / name).write_bytes((folder / name).read_bytes())
        weights = load_file(folder / "heads.safetensors")
        weights.pop("sharpness")
        save_file(weights, place / "heads.safetensors")
    with pytest.raises(CheckpointError, match="lacks or adds the weights sharpness"):
        load_onnx_ranker(tmp_path / "half")
    with checkpoint.writing(tmp_path / "long", "ranker") as place:
        for name in ("adapter_config.json", "adapter_model.safetensors", "heads.safetensors"):
            (place / name).write_bytes((folder / name).read_bytes())
        text = (folder / "config.json").read_text()
        (place / "config.json").write_text(text.replace('"context_tokens": 24', '"context_tokens": 65'))
    with pytest.raises(InputError, match=r"texts of 65 tokens.*64 at most.*Lower"):
        load_onnx_ranker(tmp_path / "long")


RANKS = """
import json
from pathlib import Path
from listenwell.dialogue import Dialogue
from listenwell.rankers.ranker import Ranker
selector = Ranker.load(Path(sys.argv[1]), Path(sys.argv[2]))
talk, replies = Dialogue.from_json(sys.argv[3]), json.loads(sys.argv[4])
first = selector.reply_vectors(replies) @ selector.context_vector(talk)
print(json.dumps([selector.scores(talk, replies).tolist(), first.tolist()]))
assert not {"torch", "transformers", "peft"} & set(sys.modules)
"""


def test_ranking_and_searching_need_no_torch(tiny_encoder, tmp_path):
    import json

    settings = CobertSettings((0, 1, 2), "max", weighted=True, vectors=0.5)
    folder = keep_ranker(tiny_ranker(tiny_encoder, lora=True, cobert=settings)[0], tmp_path / "kept")
    printed = run_without_torch(RANKS, folder, tiny_encoder, MANY[1].to_json(), json.dumps(MORE))
    selector = Ranker.load(folder, tiny_encoder)
    scores, first = json.loads(printed)
    assert scores == pytest.approx(selector.scores(MANY[1], MORE).tolist(), abs=1e-5)
    vectors = selector.reply_vectors(MORE) @ selector.context_vector(MANY[1])
    assert first == pytest.approx(vectors.tolist(), abs=1e-5)


def test_without_torch_other_rankers_say_what_to_install(tiny_encoder, tmp_path):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "poly")[0], tmp_path / "kept")
    program = """
from pathlib import Path
from listenwell.errors import MissingExtraError
from listenwell.rankers.ranker import Ranker
try:
    Ranker.load(Path(sys.argv[1]), Path(sys.argv[2]))
except MissingExtraError as error:
    print(error)
"""
    printed = run_without_torch(program, folder, tiny_encoder)
    assert "The ranker poly needs the package 'torch'" in printed
    assert "pip install 'listenwell[train]'" in printed
