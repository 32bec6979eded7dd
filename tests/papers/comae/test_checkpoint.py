import pytest
import torch

from listenwell import checkpoint
from listenwell.errors import WeightsError
from listenwell.papers.comae.checkpoint import KIND, load_model, make_model, save_model
from listenwell.papers.comae.config import ComaeConfig
from listenwell.papers.comae.inputs import Inputs
from listenwell.papers.comae.scoring import score
from listenwell.runtime.text import Vocabulary
from listenwell.training.adapters import add_lora
from listenwell.training.recipe import LoraRecipe
from tests.papers.comae.talks import FAMILY, tiny_comae, told_examples
from tests.tiny import tiny_tokenizer


def halved(model):
    """The model with weights that fp16 holds exactly."""
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    return model


def kept(model, vocabulary, folder):
    with checkpoint.writing(folder, KIND) as place:
        save_model(model, vocabulary, place)
    return folder


def figures(model, inputs):
    pieces = [inputs.encode(example, 256) for example in told_examples(3)]
    found = score(model, pieces)
    return found.nll["gold"].tolist(), found.ranks["gold"].tolist()


@pytest.mark.parametrize("config", FAMILY, ids=lambda config: config.title)
def test_saved_and_loaded_it_gives_the_same_numbers(tiny_llama, tmp_path, config):
    model, inputs = tiny_comae(
        tiny_llama, loud=True, factors=config.factors, hierarchical=config.hierarchical, lr_multiplier=4
    )
    folder = kept(halved(model), inputs.vocabulary, tmp_path / "best")
    again, vocabulary = load_model(folder)  # without the base
    assert again.config == model.config
    assert figures(again, Inputs(vocabulary, again.config)) == figures(model, inputs)


def test_an_adapter_is_saved_alone_and_merged_when_loaded(tiny_llama, tmp_path):
    model, inputs = tiny_comae(tiny_llama, loud=True)
    model.decoder = add_lora(model.decoder, LoraRecipe(4, 8, 0.0), model.config.base, "FEATURE_EXTRACTION")
    torch.manual_seed(3)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)
        elif not name.startswith("decoder."):
            assert parameter.requires_grad
    halved(model).eval()
    folder = kept(model, inputs.vocabulary, tmp_path / "best")
    assert not (folder / "model.safetensors").exists()
    again, _ = load_model(folder, tiny_llama)
    expected, found = figures(model, inputs), figures(again, inputs)
    assert found[0] == pytest.approx(expected[0], rel=1e-4) and found[1] == expected[1]


def save_gpt2(folder, **settings):
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=256, n_embd=32, n_layer=2, n_head=2, **settings
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("tied", [True, False])
def test_other_causal_models_carry_it_too(tmp_path, tied):
    base = tmp_path / "gpt2"
    base.mkdir()
    model, folder = make_model(ComaeConfig(), save_gpt2(base, tie_word_embeddings=tied))
    assert (model.head is None) == tied
    inputs = Inputs(Vocabulary.from_folder(folder), model.config)
    halved(model).eval()
    assert model.output_weights().shape == (len(inputs.vocabulary), 32)
    again, _ = load_model(kept(model, inputs.vocabulary, tmp_path / "best"))
    assert figures(again, inputs) == figures(model, inputs)


def test_dropout_is_heard(tiny_llama):
    model, _ = make_model(ComaeConfig(), tiny_llama, 0.5)
    inputs = Inputs(Vocabulary.from_folder(tiny_llama), model.config)
    assert figures(model.train(), inputs) != figures(model, inputs)
    assert figures(model.eval(), inputs) == figures(model, inputs)


def test_a_folder_without_a_causal_model_is_named(tmp_path):
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(WeightsError, match="no causal model"):
        make_model(ComaeConfig(), tmp_path)
