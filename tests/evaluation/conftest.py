"""A tiny sentence encoder in the layout of all-MiniLM-L6-v2."""

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

PIECES = """
[PAD] [UNK] [CLS] [SEP] i am so sorry happy to hear that is great sad ' t didn ##ing ! . ?
"""


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("encoder")
    vocabulary = {piece: number for number, piece in enumerate(PIECES.split())}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=40)  # the real file pads to a fixed length too: it must be undone
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    return folder
