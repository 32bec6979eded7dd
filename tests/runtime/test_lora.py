import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from listenwell.errors import CheckpointError
from listenwell.runtime.encoder import merge_lora


def two_layers():
    """Linear layers of 2 by 2, the first inside a block; weights 1 to 4, and ones."""
    block = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False))
    model = torch.nn.ModuleDict({"block": block, "other": torch.nn.Linear(2, 2, bias=False)})
    with torch.no_grad():
        block[0].weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        model["other"].weight.fill_(1.0)
    return model


def adapter(folder, tensors=None, **settings):
    """Rank 1 and alpha 3: W + 3 B A on the block's layer."""
    tensors = tensors or {
        "base_model.model.block.0.lora_A.weight": torch.tensor([[1.0, 10.0]]),
        "base_model.model.block.0.lora_B.weight": torch.tensor([[2.0], [5.0]]),
    }
    save_file({name: value.half() for name, value in tensors.items()}, folder / "adapter.safetensors")
    (folder / "config.json").write_text(json.dumps({"r": 1, "lora_alpha": 3} | settings))
    return folder / "config.json", folder / "adapter.safetensors"


def test_an_adapter_is_added_worked_by_hand(tmp_path):
    model = two_layers()
    merge_lora(model, *adapter(tmp_path))
    # 3 B A = 3 [[2, 20], [5, 50]]
    assert model["block"][0].weight.tolist() == [[1 + 6, 2 + 60], [3 + 15, 4 + 150]]
    assert model["other"].weight.tolist() == [[1, 1], [1, 1]]
    assert model["block"][0].weight.requires_grad and model["block"][0].weight.grad_fn is None


@pytest.mark.parametrize(
    "settings",
    [
        {"use_dora": True},
        {"use_rslora": True},
        {"alpha_pattern": {"block.0": 7}},
        {"rank_pattern": {"block.0": 2}},
        {"fan_in_fan_out": True},
    ],
)
def test_other_kinds_of_adapters_are_refused_and_nothing_is_changed(tmp_path, settings):
    model = two_layers()
    with pytest.raises(CheckpointError, match=r"more than plain LoRA.*peft"):
        merge_lora(model, *adapter(tmp_path, **settings))
    assert model["block"][0].weight.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "name",
    [
        "base_model.model.embeddings.lora_embedding_A",
        "base_model.model.block.0.lora_magnitude_vector.weight",
        "base_model.model.other.weight",
    ],
)
def test_weights_that_would_be_passed_over_are_refused(tmp_path, name):
    with pytest.raises(CheckpointError, match="more than plain LoRA"):
        merge_lora(two_layers(), *adapter(tmp_path, {name: torch.ones(2, 2)}))


def test_an_adapter_of_another_model_is_named(tmp_path):
    tensors = {
        "base_model.model.block.7.lora_A.weight": torch.ones(1, 2),
        "base_model.model.block.7.lora_B.weight": torch.ones(2, 1),
    }
    with pytest.raises(CheckpointError, match=r"a layer 'block\.7' that the model lacks.*base model"):
        merge_lora(two_layers(), *adapter(tmp_path, tensors))


@pytest.mark.parametrize("base", ["tiny_encoder", "tiny_llama"])
def test_merged_it_computes_what_peft_computes(base, request, tmp_path):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModel

    folder = request.getfixturevalue(base)
    plain = AutoModel.from_pretrained(folder).eval()
    config = LoraConfig(r=3, lora_alpha=5, target_modules="all-linear", task_type="FEATURE_EXTRACTION")
    adapted = get_peft_model(AutoModel.from_pretrained(folder), config).eval()
    torch.manual_seed(4)
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    adapted.save_pretrained(tmp_path, save_embedding_layers=False)
    assert any("lora_B" in name for name in load_file(tmp_path / "adapter_model.safetensors"))
    tokens = torch.tensor([[2, 7, 30, 31, 3]])
    with torch.inference_mode():
        before, wanted = (model(tokens).last_hidden_state for model in (plain, adapted))
        merge_lora(plain, tmp_path / "adapter_config.json", tmp_path / "adapter_model.safetensors")
        merged = plain(tokens).last_hidden_state
    assert (before - wanted).abs().max() > 0.1
    torch.testing.assert_close(merged, wanted, rtol=0, atol=1e-4)
