from dataclasses import replace

import numpy as np
import pytest
import torch

from listenwell.dialogue import Dialogue, Turn
from listenwell.errors import RecipeError
from listenwell.runtime.text import Vocabulary
from listenwell.training.batching import Epoch
from listenwell.training.causal import CausalTask, DialogueData, encode_dialogue
from listenwell.training.generator_task import CausalObjective
from listenwell.training.recipe import BatchRecipe, DataRecipe
from tests.tiny import tiny_tokenizer
from tests.training.helpers import talks, tiny_recipe, write_corpus

VOCABULARY = Vocabulary(tiny_tokenizer())
CPU = torch.device("cpu")


@pytest.fixture
def task(tiny_llama, tmp_path):
    return CausalTask.prepare(tiny_recipe(tmp_path / "run", write_corpus(tmp_path / "data"), tiny_llama), CPU)


def targets_of(encoded):
    """The learned texts, one for each unbroken run of targets."""
    runs = np.split(np.arange(len(encoded)), np.flatnonzero(np.diff(encoded.targets.astype(int))) + 1)
    return [encoded.tokens[run] for run in runs if encoded.targets[run[0]]]


def test_the_targets_are_the_listeners_words_and_end_marks():
    dialogue = list(talks(2))[1]
    runs = targets_of(encode_dialogue(VOCABULARY, dialogue, 512))
    assert [VOCABULARY.decode(run) for run in runs] == [dialogue.turns[1].text, dialogue.turns[3].text]
    assert all(run[-1] == VOCABULARY.special("<|im_end|>") for run in runs)


def test_everyones_turns_can_be_learned():
    dialogue = list(talks(2))[1]
    runs = targets_of(encode_dialogue(VOCABULARY, dialogue, 512, everyone=True))
    assert [VOCABULARY.decode(run) for run in runs] == [turn.text for turn in dialogue.turns]


def test_a_long_dialogue_loses_its_oldest_turns_and_counts_what_is_left():
    dialogue = list(talks(2))[1]
    whole = encode_dialogue(VOCABULARY, dialogue, 512)
    cut = encode_dialogue(VOCABULARY, dialogue, len(whole) - 1)
    assert (whole.replies, cut.replies) == (2, 1)
    assert cut.words == len(dialogue.turns[3].text.split())
    assert cut.bytes == len(dialogue.turns[3].text)
    assert encode_dialogue(VOCABULARY, dialogue, 10) is None


def test_a_dialogue_without_a_reply_teaches_nothing():
    assert (
        encode_dialogue(VOCABULARY, Dialogue((Turn("speaker", "hi"), Turn("speaker", "there"))), 512) is None
    )
    assert encode_dialogue(VOCABULARY, Dialogue((Turn("listener", "hi"), Turn("speaker", "yo"))), 512) is None


def loss_of(task, batching, tokens, accumulate=1):
    recipe = BatchRecipe(batching, tokens, 256, accumulate)
    task.model.eval()
    with torch.no_grad():
        steps = Epoch(task.examples(), task.collate, recipe, 3, 0).steps()
        return sum(float(task.loss_sum(batch)) for step in steps for batch in step.batches)


def test_the_loss_is_the_same_however_sequences_are_batched(task):
    alone = loss_of(task, "bucketed", 256)
    assert loss_of(task, "packed", 1024) == pytest.approx(alone, rel=1e-5)
    assert loss_of(task, "packed", 512, accumulate=2) == pytest.approx(alone, rel=1e-5)
    assert loss_of(task, "bucketed", 2048) == pytest.approx(alone, rel=1e-5)


def test_the_loss_is_that_of_the_plain_model(task):
    task.model.eval()
    expected = 0.0
    for encoded in task.examples():
        tokens = torch.tensor(encoded.tokens[None].astype(np.int64))
        labels = torch.where(torch.tensor(encoded.targets), tokens[0], -100)[None]
        with torch.no_grad():
            expected += float(task.model(input_ids=tokens, labels=labels).loss) * int(encoded.targets.sum())
    assert loss_of(task, "packed", 1024) == pytest.approx(expected, rel=1e-4)


def test_validation_does_not_depend_on_how_training_is_batched(task):
    recipe = replace(task.recipe, batches=BatchRecipe("bucketed", 512, 128))
    data = DialogueData(task.vocabulary, recipe)
    other = CausalTask(task.generator, data, CausalObjective(task.generator), recipe)
    assert other.measure("valid") == pytest.approx(task.measure("valid"), rel=1e-5)


def test_the_three_units_of_perplexity_agree(task):
    found = task.measure("test")
    nll = found["nll"]
    assert found["perplexity_by_token"] == pytest.approx(np.exp(nll / found["tokens"]))
    assert found["perplexity_by_word"] == pytest.approx(np.exp(nll / found["words"]))
    assert found["bits_per_byte"] == pytest.approx(nll / np.log(2) / found["bytes"])
    texts = [example.reply.text for dialogue in talks(6) for example in dialogue.examples()]
    assert found["words"] == sum(len(text.split()) for text in texts)
    assert found["replies"] == len(texts)


def test_dropout_acts_in_training_and_not_in_measuring(task):
    (step, *_) = Epoch(task.examples(), task.collate, task.recipe.batches, 1, 0).steps()
    task.model.train()
    assert float(task.loss_sum(step.batches[0])) != float(task.loss_sum(step.batches[0]))
    assert task.measure("valid") == task.measure("valid")
    assert task.model.training


def test_nothing_to_learn_from_is_a_clear_error(tiny_llama, tmp_path):
    corpus = write_corpus(tmp_path / "data")
    (corpus / "train.jsonl").write_text('{"turns": [{"speaker": "a", "text": "b"}]}\n')
    recipe = tiny_recipe(tmp_path / "run", corpus, tiny_llama, data=DataRecipe(corpus="jsonl", path=corpus))
    with pytest.raises(RecipeError, match="no dialogue with a reply"):
        CausalTask.prepare(recipe, CPU)


def test_a_reply_alone_is_the_listeners_turn_without_anything_before_it():
    reply = Dialogue((Turn("b", "Oh no, that is sad."),), listener="b")
    assert encode_dialogue(VOCABULARY, reply, 512) is None
    encoded = encode_dialogue(VOCABULARY, reply, 512, everyone=True)
    start, end = VOCABULARY.special("<|im_start|>"), VOCABULARY.special("<|im_end|>")
    words = VOCABULARY.encode("Oh no, that is sad.")
    head = [start, *VOCABULARY.encode("assistant\n")]
    assert encoded.tokens.tolist() == [*head, *words, end, *VOCABULARY.encode("\n")]
    (run,) = targets_of(encoded)
    assert run.tolist() == [*words, end]
    assert (encoded.replies, encoded.words) == (1, 5)
    assert encode_dialogue(VOCABULARY, reply, len(encoded) - 1, everyone=True) is None


@pytest.mark.parametrize("learn", ["replies", "all"])
def test_a_share_of_the_replies_is_learned_alone_too(tiny_llama, tmp_path, learn):
    corpus = write_corpus(tmp_path / "data", train=60)
    replies = [example.reply.text for dialogue in talks(60) for example in dialogue.examples()]

    def task(alone, seed=1):
        recipe = tiny_recipe(
            tmp_path / "run", corpus, tiny_llama, unconditional=alone, seed=seed, learn=learn
        )
        return CausalTask.prepare(recipe, CPU)

    def learned(given):
        return [VOCABULARY.decode(targets_of(piece)[0]) for piece in given.examples()[60:]]

    plain, every = task(0.0), task(1.0)
    assert len(plain.examples()) == 60 and learned(every) == replies
    for one, other in zip(plain.examples(), every.examples(), strict=False):
        assert one.tokens.tolist() == other.tokens.tolist()
    some = learned(task(0.3))
    assert 0.15 * len(replies) < len(some) < 0.45 * len(replies)
    assert some == learned(task(0.3)) and some != learned(task(0.3, seed=2))
    # What is measured never changes.
    assert task(0.3).measure("valid") == plain.measure("valid")
    assert plain.conditions()["learned without context"] == "0 % of the replies once more"
    assert task(0.3).conditions()["learned without context"] == "30 % of the replies once more"


@pytest.mark.parametrize("alone", [-0.1, 1.5])
def test_a_share_is_between_nothing_and_all(tiny_llama, tmp_path, alone):
    with pytest.raises(RecipeError, match=f"unconditional is {alone}"):
        tiny_recipe(tmp_path / "run", tmp_path, tiny_llama, unconditional=alone)
