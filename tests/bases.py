"""Tiny random models of every family, with the special tokens of their chat formats."""

import json

from tests.tiny import tiny_tokenizer

LLAMA_MARKS = (
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
)
GEMMA_MARKS = ("<bos>", "<start_of_turn>", "<end_of_turn>")
THINKING_MARKS = ("<think>", "</think>")  # ordinary added tokens in Qwen 3's own files
SIZES = {
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 2048,
    "initializer_range": 0.2,  # untrained models that still tell texts apart
    "pad_token_id": 0,
}
WINDOW = 6
GEMMA = {"query_pre_attn_scalar": 24, "sliding_window": WINDOW}
FAMILIES = {
    "llama": {
        "max_position_embeddings": 16_384,
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 1e6,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    },
    "qwen2": {"head_dim": 16, "hidden_size": 64, "tie_word_embeddings": True},
    "qwen3": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    "gemma2": {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0} | GEMMA,
    "gemma3_text": GEMMA
    | {
        "sliding_window_pattern": 2,
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    },
}
"""By model_type: what differs from SIZES."""


def marked_tokenizer(family):
    """A byte-level vocabulary with the family's special tokens."""
    tokenizer = tiny_tokenizer()
    if family == "llama":
        tokenizer = _renamed(tokenizer)
        tokenizer.add_special_tokens(list(LLAMA_MARKS))
    elif family.startswith("gemma"):
        tokenizer = _renamed(tokenizer)
        tokenizer.add_special_tokens(list(GEMMA_MARKS))
    elif family == "qwen3":
        tokenizer.add_tokens(list(THINKING_MARKS))
    return tokenizer


def _renamed(tokenizer):
    """Without ChatML's marks."""
    from tokenizers import Tokenizer

    text = tokenizer.to_str().replace("<|im_start|>", "<unused0>").replace("<|im_end|>", "<unused1>")
    return Tokenizer.from_str(text)


def random_model(family, vocabulary, **changes):
    """A transformers model in which every weight is random, norms and biases too."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    settings = SIZES | FAMILIES[family] | changes
    config = AutoConfig.for_model(family, vocab_size=vocabulary, **settings)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


GGUF_ARCHITECTURES = {"gemma3_text": "gemma3"}
GGUF_CHANGES = {
    "gemma2": {"query_pre_attn_scalar": 32},
    "gemma3_text": {"query_pre_attn_scalar": 32, "sliding_window_pattern": 6, "num_hidden_layers": 7},
}
"""What a GGUF file does not hold is as in the published models."""


def write_gguf(file, family):
    """A tiny random model as llama.cpp's converter writes it, in full precision; returns the model."""
    import gguf

    tokenizer = marked_tokenizer(family)
    model = random_model(family, tokenizer.get_vocab_size(), **GGUF_CHANGES.get(family, {}))
    config, architecture = model.config, GGUF_ARCHITECTURES.get(family, family)
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_key_length(SIZES["head_dim"] if family != "qwen2" else 16)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope.get("full_attention", rope)["rope_theta"])
    if family == "gemma3_text":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(4.0)
    if family == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if family.startswith("gemma"):
        writer.add_sliding_window(config.sliding_window)
    _write_vocabulary(writer, tokenizer)
    for name, values in _packed(model, architecture).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _write_vocabulary(writer, tokenizer):
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 4 if token in added else 1 for token in tokens])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_eos_token_id(2)


def _packed(model, architecture):
    """The weights by llama.cpp's names, in its form."""
    import gguf
    import torch

    config, tensors = model.config, {}
    (number,) = [key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture]
    names = gguf.get_tensor_name_map(number, config.num_hidden_layers)
    for name, values in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        packed = values.numpy().copy()
        if name.endswith("norm.weight") and architecture.startswith("gemma"):
            packed += 1
        part = name.split(".")[-2]
        if architecture == "llama" and part in ("q_proj", "k_proj"):
            heads = config.num_attention_heads if part == "q_proj" else config.num_key_value_heads
            halves = packed.reshape(heads, 2, -1, packed.shape[1])
            packed = halves.swapaxes(1, 2).reshape(packed.shape)
        tensors[names.get_name(name, (".weight", ".bias"))] = packed
    if architecture == "llama":
        rope, width = config.rope_parameters, SIZES["head_dim"]
        plain = rope["rope_theta"] ** -(torch.arange(0, width, 2) / width)
        tensors["rope_freqs.weight"] = (plain / model.model.rotary_emb.inv_freq).numpy()
    return tensors


def save_base(folder, family, unused=0, shards=None, **changes):
    """A base model's folder; `unused`: rows of its tables behind the vocabulary's."""
    tokenizer = marked_tokenizer(family)
    model = random_model(family, tokenizer.get_vocab_size() + unused, **changes)
    model.save_pretrained(folder, **({"max_shard_size": shards} if shards else {}))
    tokenizer.save(str(folder / "tokenizer.json"))
    assert json.loads((folder / "config.json").read_text())["model_type"] == family
    return folder
