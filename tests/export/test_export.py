import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from listenwell.checkpoint import open_checkpoint, writing
from listenwell.cli import app
from listenwell.errors import CheckpointError, InputError, WeightsError
from listenwell.export import merged, write_gguf, write_hugging_face
from listenwell.generators.vanilla import runtime_of
from listenwell.runtime.engines import Engine
from listenwell.runtime.gguf import gguf_name, unpack_gguf
from listenwell.runtime.onnx.tensors import Tensors
from listenwell.runtime.text import Vocabulary
from listenwell.training.recipe import LoraRecipe
from listenwell.training.run import train
from tests.bases import save_base
from tests.training.helpers import tiny_recipe, write_corpus
from tests.training.test_planned import annotated

LORA = LoraRecipe(rank=4, alpha=8, dropout=0.0)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory, tiny_llama):
    """A checkpoint of a planned generator as an adapter with new tokens."""
    folder = tmp_path_factory.mktemp("speaker")
    corpus = write_corpus(folder / "data")
    for split, count in (("train", 24), ("valid", 4), ("test", 4)):
        lines = [dialogue.to_json() for dialogue in annotated(count)]
        (corpus / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    recipe = tiny_recipe(folder / "run", corpus, tiny_llama, model="planned", lora=LORA, epochs=1)
    train(recipe)
    return recipe.output / "best"


@pytest.fixture
def model(adapter, tiny_llama, monkeypatch):
    monkeypatch.setattr("listenwell.export.find_weights", lambda base: tiny_llama)
    monkeypatch.setattr("listenwell.generators.vanilla.find_source", lambda base: tiny_llama)
    return merged(open_checkpoint(adapter))


def test_transformers_gives_the_same_logits_without_our_code(model, adapter, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    write_hugging_face(model, tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    messages = [
        {"role": "system", "content": "About you: I sing."},
        {"role": "user", "content": "Hi <|im_end|>"},
    ]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    assert text.endswith("<|im_start|>assistant\n")
    plan = "<|emotion:sad|><|mechanisms:EX|><|act:questioning|><|tone:caring|>"
    steered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, plan=plan)
    tokens = tokenizer(steered, add_special_tokens=False)["input_ids"]
    ours = runtime_of(open_checkpoint(adapter), Engine("torch"))
    assert tokens[-4:] == [ours.vocabulary.special(f"<|{part}|>") for part in plan[2:-2].split("|><|")]
    with torch.inference_mode():
        logits = exported(torch.tensor([tokens])).logits[0, -1].numpy()
    np.testing.assert_allclose(logits, ours.logits(ours.prefill(tokens))[0], atol=1e-4)


def test_a_gguf_file_holds_the_same_model(model, tmp_path):
    write_gguf(model, tmp_path / "speaker.gguf", "tiny")
    folder = tmp_path / "unpacked"
    folder.mkdir()
    unpack_gguf(tmp_path / "speaker.gguf", folder)
    back = Tensors(folder / "model.safetensors")
    names = [name for name in model.weights if name in back]
    assert len(names) >= len(back) > 10
    for name in names:
        np.testing.assert_allclose(back[name], model.weights[name], atol=1e-3)
    config = json.loads((folder / "config.json").read_text())
    for key in ("vocab_size", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "head_dim"):
        assert config[key] == pytest.approx(model.config[key])
    ours, theirs = Vocabulary.from_folder(model.tokenizer.parent), Vocabulary.from_folder(folder)
    assert ours.special_ids == theirs.special_ids
    for text in ("I am so happy for you! 123", "<|act:questioning|> é\n"):
        assert ours.encode(text) == theirs.encode(text)


def test_names_go_there_and_back():
    assert gguf_name("model.layers.3.self_attn.q_proj.weight") == "blk.3.attn_q.weight"
    assert gguf_name("model.embed_tokens.weight") == "token_embd.weight"
    with pytest.raises(WeightsError, match="bias"):
        gguf_name("model.layers.3.other.bias")


def test_the_command_writes_and_never_over_what_is_there(tiny_generator, tmp_path):
    run = CliRunner()
    target = tmp_path / "out"
    made = run.invoke(app, ["export", str(target), "--to", "hf", "--weights", str(tiny_generator)])
    assert made.exit_code == 0, made.exception
    assert (target / "model.safetensors").is_file()
    again = run.invoke(app, ["export", str(target), "--to", "hf", "--weights", str(tiny_generator)])
    assert isinstance(again.exception, InputError) and "--overwrite" in str(again.exception)
    file = run.invoke(
        app, ["export", str(tmp_path / "x.gguf"), "--to", "gguf", "--weights", str(tiny_generator)]
    )
    assert file.exit_code == 0, file.exception
    none = run.invoke(app, ["export", str(tmp_path / "y"), "--to", "hf", "--weights", str(tmp_path / "none")])
    assert isinstance(none.exception, CheckpointError)


def test_bases_that_cannot_be_exported_are_named(tmp_path):
    for family in ("gemma2", "qwen2"):
        with writing(tmp_path / family, "planned") as aside:
            save_base(aside, family)
    with pytest.raises(WeightsError, match=r"another chat format than ChatML\. Export one"):
        merged(open_checkpoint(tmp_path / "gemma2"))
    with pytest.raises(WeightsError, match=r"a 'qwen2' model, not a plain Llama\. Export it with --to hf"):
        write_gguf(merged(open_checkpoint(tmp_path / "qwen2")), tmp_path / "x.gguf", "mine")
