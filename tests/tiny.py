"""Tiny real models with a real byte-level vocabulary, made from nothing."""

import string

import numpy as np
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SENTENCES = [
    "system user assistant I am so happy for you! How did it go?",
    "That must be hard. What happened to your dog?",
    "I feel alone since I moved to this city. Oh no, that is sad.",
] * 5
ENCODER = "all-minilm-l6-v2"
BERT_MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
PIECES = """
i am so sorry happy to hear that is great sad ' t didn ##ing ! . ? my dog died got promoted what happened you
good luck the new job
"""
"""Words of the encoder's vocabulary; every other one is spelled in letters."""
WIDTH, HEADS, KEY_HEADS, LAYERS, INNER, POSITIONS = 64, 4, 2, 2, 96, 512


def tiny_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[AddedToken(mark, special=True, normalized=False) for mark in MARKS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


def save_tiny_llama(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def encoder_pieces():
    """The encoder's vocabulary; a piece's number is its place."""
    letters = string.ascii_lowercase + string.digits
    known = dict.fromkeys(
        [*BERT_MARKS, *PIECES.split(), *letters, *(f"##{letter}" for letter in letters), *string.punctuation]
    )
    return {piece: number for number, piece in enumerate(known)}


def tiny_bert_tokenizer():
    tokenizer = Tokenizer(models.WordPiece(encoder_pieces(), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False) for mark in BERT_MARKS])
    tokenizer.enable_padding(length=40)  # the real file pads to a fixed length too: it must be undone
    return tokenizer


def save_tiny_encoder(folder, seed=0):
    import torch
    from transformers import BertConfig, BertModel

    tokenizer = tiny_bert_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
        initializer_range=0.3,  # an untrained encoder that still tells texts apart
    )
    BertModel(config).save_pretrained(folder)
    return folder


def tiny_ear(encoder, heads, lora=False, seed=1, **settings):
    """An ear over a tiny encoder's folder; its heads, and its adapter, have random opinions."""
    import torch

    from listenwell.annotators.model import ClassifierConfig, MultiTaskClassifier, load_encoder

    config = ClassifierConfig(ENCODER, tuple(heads), **({"limit": 64} | settings))
    model, _ = load_encoder(ENCODER, encoder)
    if lora:
        from listenwell.training.adapters import add_lora
        from listenwell.training.recipe import LoraRecipe

        model = add_lora(model, LoraRecipe(4, 8, 0.0), ENCODER, "FEATURE_EXTRACTION")
    classifier = MultiTaskClassifier(model, config)
    torch.manual_seed(seed)
    for name, parameter in classifier.named_parameters():
        if not name.startswith("encoder."):
            torch.nn.init.normal_(parameter)
        elif "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return classifier.eval()


def sure_ear(encoder, opinions, **settings):
    """An ear that hears the same in every text: scores of labels by head, all others 0."""
    import torch

    from listenwell.annotators.heads import HEADS

    classifier = tiny_ear(encoder, opinions, **settings)
    with torch.no_grad():
        for head, scores in opinions.items():
            classifier.heads[head].weight.zero_()
            classifier.heads[head].bias.zero_()
            for label, score in scores.items():
                classifier.heads[head].bias[HEADS[head].labels.index(label)] = score
    return classifier


def keep_ear(classifier, folder, seed=1):
    """The ear as a checkpoint, with the recipe that could have made it."""
    from pathlib import Path

    from listenwell import checkpoint
    from listenwell.annotators.model import KIND, save_classifier
    from listenwell.recipe import write_recipe
    from listenwell.training.recipe import TrainRecipe
    from listenwell.training.task_configs import ClassifierRecipe, ClassifierTaskConfig

    recipe = TrainRecipe(
        Path("runs/tiny"),
        "classifier",
        classifier.config.base,
        seed=seed,
        task=ClassifierTaskConfig(ClassifierRecipe(classifier.config.heads)),
    )
    with checkpoint.writing(folder, KIND) as place:
        save_classifier(classifier, place)
        write_recipe(recipe, place / "recipe.yaml")
    return folder


def write_tiny_gguf(file):
    import gguf

    tokenizer, random = tiny_tokenizer(), np.random.default_rng(0)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(POSITIONS)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_block_count(LAYERS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(vocabulary))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in MARKS else 1 for token in vocabulary])
    import json

    writer.add_token_merges([" ".join(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def add(name, *shape, kind=gguf.GGMLQuantizationType.Q8_0):
        values = random.standard_normal(shape).astype(np.float32) * 0.05
        if len(shape) == 1:
            writer.add_tensor(name, values + 1)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    add("token_embd.weight", len(vocabulary), WIDTH)
    add("output_norm.weight", WIDTH)
    keys = WIDTH // HEADS * KEY_HEADS
    for layer in range(LAYERS):
        add(f"blk.{layer}.attn_norm.weight", WIDTH)
        add(f"blk.{layer}.ffn_norm.weight", WIDTH)
        add(f"blk.{layer}.attn_q.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.attn_k.weight", keys, WIDTH)
        add(f"blk.{layer}.attn_v.weight", keys, WIDTH)
        add(f"blk.{layer}.attn_output.weight", WIDTH, WIDTH)
        add(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        add(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        add(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def save_tiny_speaker(folder, llama):
    """A planned generator as a whole model: the tiny llama with a row for each plan token."""
    import torch
    from transformers import AutoModelForCausalLM

    from listenwell.checkpoint import writing
    from listenwell.generators.planned import KIND
    from listenwell.generators.plans import MANNER_TOKENS, TOKENS
    from listenwell.runtime.text import Vocabulary

    vocabulary = Vocabulary.from_folder(llama).extended((*TOKENS, *MANNER_TOKENS))
    model = AutoModelForCausalLM.from_pretrained(llama)
    known = model.config.vocab_size
    torch.manual_seed(3)
    with torch.no_grad():
        model.resize_token_embeddings(len(vocabulary), mean_resizing=False)
        rows = [torch.randn(len(tokens), WIDTH) for tokens in (TOKENS, MANNER_TOKENS)]
        model.get_input_embeddings().weight[known:] = 0.05 * torch.cat(rows)
    with writing(folder, KIND) as aside:
        model.save_pretrained(aside)
        (aside / "tokenizer.json").write_text(vocabulary.to_json(), encoding="utf-8")
    return folder


def log_likelihood(runtime, prompt, reply):
    """How likely a reply is after a prompt on the torch engine, by one plain pass."""
    import torch

    tokens = torch.tensor([[*prompt, *reply]])
    with torch.inference_mode():
        logits = runtime._model(input_ids=tokens, logits_to_keep=len(reply) + 1).logits[0, :-1]
        return -float(torch.nn.functional.cross_entropy(logits, tokens[0, len(prompt) :], reduction="sum"))
