import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from listenwell import checkpoint
from listenwell.errors import CheckpointError, InputError, UnknownNameError
from listenwell.rankers import RANKERS
from listenwell.rankers.config import CobertSettings, RankerConfig
from listenwell.rankers.inference import score
from listenwell.rankers.model import KIND, load_ranker, make_ranker
from listenwell.rankers.scorer import RankerScorer
from tests.rankers.tiny_rankers import REPLIES, TALKS, keep_ranker, texts, tiny_ranker

pytestmark = pytest.mark.usefixtures("installed_encoder")


def rewritten(folder, change):
    """The checkpoint with its files changed and their sums true again."""
    kind = checkpoint.open_checkpoint(folder).kind
    aside = folder.with_name("aside")
    shutil.copytree(folder, aside)
    (aside / "checkpoint.json").unlink()
    change(aside)
    with checkpoint.writing(folder, kind) as place:
        shutil.copytree(aside, place, dirs_exist_ok=True)


@pytest.mark.parametrize("backbone", ["pretrained", "words"])
@pytest.mark.parametrize("model", list(RANKERS))
def test_saved_whole_and_loaded_it_scores_alike(tmp_path, tiny_encoder, model, backbone):
    ranker, inputs = tiny_ranker(tiny_encoder, model, backbone=backbone)
    before = score(ranker, *texts(inputs))
    folder = keep_ranker(ranker, tmp_path / "kept")
    assert sorted(checkpoint.open_checkpoint(folder, KIND).sums) == ["config.json", "model.safetensors"]
    loaded, again = load_ranker(folder)
    assert loaded.config == ranker.config and not loaded.training
    # Written in 16 bits: a thousandth of a weight is lost.
    found = score(loaded, *texts(again))
    np.testing.assert_allclose(found, before, atol=0.02 * np.abs(before).max(), rtol=0.02)
    # What was rounded once is not rounded again.
    second, last = load_ranker(keep_ranker(loaded, tmp_path / "second"))
    np.testing.assert_array_equal(score(second, *texts(last)), found)


@pytest.mark.parametrize("model", list(RANKERS))
def test_an_adapter_is_saved_alone_and_merged_when_loaded(tmp_path, tiny_encoder, model):
    ranker, inputs = tiny_ranker(tiny_encoder, model, lora=True)
    plain, _ = tiny_ranker(tiny_encoder, model)
    before = score(ranker, *texts(inputs))
    folder = keep_ranker(ranker, tmp_path / "kept")
    sums = checkpoint.open_checkpoint(folder, KIND).sums
    assert sorted(sums) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "config.json",
        "heads.safetensors",
    ]
    assert all("lora_" in name for name in load_file(folder / "adapter_model.safetensors"))
    own = {name for name in plain.state_dict() if not name.startswith("backbone.")}
    assert set(load_file(folder / "heads.safetensors")) == own
    assert str(tiny_encoder) not in (folder / "adapter_config.json").read_text()
    loaded, again = load_ranker(folder)
    assert not hasattr(loaded.backbone.encoder, "peft_config")
    found = score(loaded, *texts(again))
    np.testing.assert_allclose(found, before, atol=0.02 * np.abs(before).max(), rtol=0.02)
    generic_question, _ = make_ranker(ranker.config)
    torch.manual_seed(1)
    assert np.abs(score(generic_question.eval(), *texts(again)) - before).max() > 0.05 * np.abs(before).max()


def test_settings_are_kept(tmp_path, tiny_encoder):
    settings = {"turns": 2, "persona": 1, "cobert": CobertSettings((1, 3), "both", True, 0.5)}
    ranker, inputs = tiny_ranker(tiny_encoder, **settings)
    folder = keep_ranker(ranker, tmp_path / "kept")
    loaded, again = load_ranker(folder)
    assert loaded.config == ranker.config == RankerConfig.from_json((folder / "config.json").read_text())
    assert loaded.config.cobert == CobertSettings((1, 3), "both", True, 0.5)
    given, found = texts(inputs), texts(again)
    assert [[text.tokens.tolist() for text in part] for part in given] == [
        [text.tokens.tolist() for text in part] for part in found
    ]
    assert max(text.parts.max() for text in found[0]) == 2


def test_a_damaged_checkpoint_is_a_clear_error(tmp_path, tiny_encoder):
    folder = keep_ranker(tiny_ranker(tiny_encoder)[0], tmp_path / "kept")
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    with pytest.raises(CheckpointError, match=r"model.safetensors is damaged"):
        load_ranker(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"lacks model.safetensors"):
        load_ranker(folder)


def test_a_foreign_checkpoint_is_a_clear_error(tmp_path, tiny_encoder):
    with pytest.raises(CheckpointError, match="not a listenwell checkpoint"):
        load_ranker(tiny_encoder)
    with pytest.raises(CheckpointError, match="no such folder"):
        load_ranker(tmp_path / "none")
    with checkpoint.writing(tmp_path / "other", "classifier") as place:
        (place / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"holds a 'classifier' checkpoint, not 'ranker'"):
        load_ranker(tmp_path / "other")


def test_a_checkpoint_with_strange_settings_is_a_clear_error(tmp_path, tiny_encoder):
    folder = keep_ranker(tiny_ranker(tiny_encoder)[0], tmp_path / "kept")

    def changed(**fields):
        def change(place):
            config = json.loads((place / "config.json").read_text())
            (place / "config.json").write_text(json.dumps(config | fields))

        shutil.rmtree(folder.with_name("aside"), ignore_errors=True)
        rewritten(folder, change)

    changed(model="cobrt")
    with pytest.raises(UnknownNameError, match="cobert"):
        load_ranker(folder)
    changed(model="cobert", colour="red")
    with pytest.raises(InputError, match="no field 'colour'"):
        load_ranker(folder)


@pytest.mark.parametrize("lora", [False, True])
def test_weights_of_another_ranker_are_a_clear_error(tmp_path, tiny_encoder, lora):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "cross", lora=lora)[0], tmp_path / "kept")
    name = "heads.safetensors" if lora else "model.safetensors"

    def without_a_head(place):
        weights = load_file(place / name)
        del weights["head.weight"]
        save_file(weights, place / name)

    rewritten(folder, without_a_head)
    with pytest.raises(CheckpointError, match=r"head\.weight"):
        load_ranker(folder)


def test_texts_longer_than_the_encoder_reads_are_a_clear_error():
    with pytest.raises(InputError, match=r"texts of 128 tokens, but its encoder 64 at most.*context_tokens"):
        make_ranker(RankerConfig(persona_tokens=64))
    # A cross-encoder reads all three as one.
    with pytest.raises(InputError, match=r"texts of 72 tokens, but its encoder 64"):
        make_ranker(RankerConfig("cross", persona_tokens=24, context_tokens=32, reply_tokens=16))
    make_ranker(RankerConfig("bi", persona_tokens=24, context_tokens=32, reply_tokens=16))
    make_ranker(RankerConfig("bi", backbone="words"))  # word vectors have no places


@pytest.mark.parametrize("backbone", ["pretrained", "words"])
@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_weights_and_settings_of_earlier_releases_are_read(tmp_path, tiny_encoder, backbone, engine):
    folder = keep_ranker(tiny_ranker(tiny_encoder, "bi", backbone=backbone)[0], tmp_path / "new")
    with checkpoint.writing(tmp_path / "old", "ranker") as old:
        text = (folder / "config.json").read_text()
        (old / "config.json").write_text(text.replace('"backbone"', '"body"'))
        weights = load_file(folder / "model.safetensors")
        renamed = {name.replace("backbone.", "body.", 1): value for name, value in weights.items()}
        save_file(renamed, old / "model.safetensors")
    before, now = (RankerScorer.load(tmp_path / name, engine=engine) for name in ("old", "new"))
    np.testing.assert_array_equal(before.score(TALKS, REPLIES), now.score(TALKS, REPLIES))
