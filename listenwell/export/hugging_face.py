"""An ordinary Hugging Face folder: transformers gives the same logits from it."""

import json
from pathlib import Path

from listenwell.export.merged import TEMPLATE, Merged
from listenwell.files import folder_written_whole
from listenwell.progress import progress


def write_hugging_face(model: Merged, folder: Path) -> None:
    """config.json, model.safetensors in float32, the tokenizer and its chat template; whole or not at all."""
    from safetensors.numpy import save_file

    with folder_written_whole(folder) as aside:
        with progress("merging", len(model.weights), "tensors") as advance:
            tensors = {}
            for name in model.weights:
                tensors[name] = model.weights[name]
                advance(1)
        save_file(tensors, aside / "model.safetensors", metadata={"format": "pt"})
        tokenizer = model.tokenizer.read_text(encoding="utf-8")
        (aside / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
        for name, content in (
            ("config.json", model.config | {"dtype": "float32"}),
            ("tokenizer_config.json", _tokenizer_config()),
            ("generation_config.json", {"eos_token_id": model.config.get("eos_token_id")}),
        ):
            (aside / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _tokenizer_config() -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
        "clean_up_tokenization_spaces": False,
        "chat_template": TEMPLATE,
    }
