import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from listenwell.errors import InputError, WeightsError
from listenwell.runtime.base import TopTokens, top_tokens_of
from listenwell.runtime.onnx.engine import ROOM, OnnxRuntime
from listenwell.runtime.onnx.session import TELEMETRY, real_cores
from listenwell.runtime.torch_engine import TorchRuntime

TEXT, OTHER = "I am so happy for you! How did it go?", "That must be hard."


@pytest.fixture(scope="module")
def reference(tiny_llama):
    return TorchRuntime.from_folder(tiny_llama)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    """One cache for this file's engines."""
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture(scope="module", params=["fp32", "int8"])
def runtime(request, tiny_llama, graphs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LISTENWELL_CACHE", str(graphs))
        return OnnxRuntime.load(tiny_llama, precision=request.param, threads=1)


@pytest.fixture
def exact(tiny_llama):
    return OnnxRuntime.load(tiny_llama, precision="fp32", threads=1)


def test_exact_logits_are_those_of_torch(exact, reference):
    tokens = reference.encode(TEXT)
    found, wanted = (engine.logits(engine.prefill(tokens)) for engine in (exact, reference))
    assert found.shape == (1, len(exact.vocabulary)) and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_rounded_logits_are_close_to_those_of_torch(tiny_llama, reference):
    rounded = OnnxRuntime.load(tiny_llama, threads=1)
    tokens = reference.encode(TEXT)
    found, wanted = (engine.logits(engine.prefill(tokens)) for engine in (rounded, reference))
    assert 0 < np.abs(found - wanted).max() < 0.02 < np.abs(wanted).max() / 50


def test_steps_and_chunks_give_what_one_reading_gives(runtime):
    tokens = runtime.encode(TEXT)
    wanted = runtime.logits(runtime.prefill(tokens))
    one_by_one = runtime.prefill(tokens[:3])
    for token in tokens[3:]:
        one_by_one = runtime.step(one_by_one, [[token]])
    np.testing.assert_allclose(runtime.logits(one_by_one), wanted, atol=1e-5)
    at_once = runtime.step(runtime.prefill(tokens[:3]), [tokens[3:]])
    np.testing.assert_allclose(runtime.logits(at_once), wanted, atol=1e-5)


def test_picked_and_joined_rows_go_on_as_if_alone(runtime):
    first, second = runtime.encode(TEXT), runtime.encode(OTHER)
    assert len(first) != len(second)
    joined = runtime.join([runtime.prefill(first), runtime.prefill(second)])
    state = runtime.step(runtime.pick(joined, [1, 0, 1]), [[5, 6, 7], [8, 9, 10], [11, 12, 13]])
    for row, tokens in enumerate(([*second, 5, 6, 7], [*first, 8, 9, 10], [*second, 11, 12, 13])):
        alone = runtime.logits(runtime.prefill(tokens))[0]
        np.testing.assert_allclose(runtime.logits(state)[row], alone, atol=1e-5)
    (kept,) = runtime.logits(runtime.step(runtime.pick(state, [1]), [[14]]))
    wanted = runtime.logits(runtime.prefill([*first, 8, 9, 10, 14]))[0]
    np.testing.assert_allclose(kept, wanted, atol=1e-5)


def test_prompts_of_different_length_are_read_side_by_side(runtime):
    prompts = [runtime.encode(TEXT), runtime.encode(OTHER), [7]]
    state = runtime.step(runtime.prefill_many(prompts), [[3], [4], [5]])
    for row, tokens in enumerate(prompts):
        alone = runtime.logits(runtime.prefill([*tokens, 3 + row]))[0]
        np.testing.assert_allclose(runtime.logits(state)[row], alone, atol=1e-5)


def test_a_state_is_a_value(runtime):
    """Going on from the same state twice gives two answers, and the first one's state still holds."""
    start = runtime.prefill(runtime.encode(OTHER))
    left, right = runtime.step(start, [[5]]), runtime.step(start, [[9]])
    left = runtime.step(left, [[6]])
    for state, tokens in ((left, (5, 6)), (right, (9,))):
        wanted = runtime.logits(runtime.prefill([*runtime.encode(OTHER), *tokens]))
        np.testing.assert_allclose(runtime.logits(state), wanted, atol=1e-5)


def test_dropped_rows_are_not_copied_and_the_older_state_stays_whole(runtime):
    """Prompts of different length; a row in the middle, the longest, goes, then the first and so on."""
    prompts = [[7, 8], runtime.encode(TEXT), [9], runtime.encode(OTHER)]
    start = runtime.prefill_many(prompts)
    left = runtime.pick(start, [0, 2, 3])
    assert left.cache is start.cache
    for token in (3, 4):
        left = runtime.step(left, [[token]] * 3)
    last = runtime.step(runtime.pick(left, [1, 2]), [[5], [6]])
    assert last.cache is start.cache
    for row, tokens in enumerate(([9, 3, 4, 5], [*prompts[3], 3, 4, 6])):
        wanted = runtime.logits(runtime.prefill(tokens))[0]
        np.testing.assert_allclose(runtime.logits(last)[row], wanted, atol=1e-5)
    again = runtime.step(start, [[10]] * 4)  # nothing that it had read was written over
    assert again.cache is not start.cache
    for row, tokens in enumerate(prompts):
        wanted = runtime.logits(runtime.prefill([*tokens, 10]))[0]
        np.testing.assert_allclose(runtime.logits(again)[row], wanted, atol=1e-5)


def test_few_rows_of_many_move_together(exact):
    start = exact.prefill_many([[5], [6], [7], [8], [9]])
    assert exact.pick(start, [0, 2, 4]).cache is start.cache
    few = exact.pick(start, [0, 4])
    assert few.cache is not start.cache
    wanted = exact.logits(exact.prefill([9, 3]))[0]
    np.testing.assert_allclose(exact.logits(exact.step(few, [[3], [3]]))[1], wanted, atol=1e-5)


def test_a_dropped_row_that_fills_its_cache_is_left_alone(exact):
    """Prompt and room are the model's 512 tokens, so there is no free place to read a zero into."""
    full = [(7 * place) % 300 + 3 for place in range(512)]
    start = exact.prefill_many([[5], full, [6]])
    left = exact.step(exact.pick(start, [0, 2]), [[8], [9]])
    assert left.cache is not start.cache
    np.testing.assert_allclose(exact.logits(left)[1], exact.logits(exact.prefill([6, 9]))[0], atol=1e-5)


@pytest.mark.parametrize("at_once", [1, 45, 10_000])
def test_branches_are_what_picked_rows_read(runtime, monkeypatch, at_once):
    """In portions of one row, of two, and all at once; branches branch again, and go on as rows."""
    monkeypatch.setattr("listenwell.runtime.onnx.engine.BRANCHED", at_once)
    rooms = list[int]()
    make = runtime._room
    monkeypatch.setattr(
        runtime, "_room", lambda rows, *rest, **more: rooms.append(rows) or make(rows, *rest, **more)
    )
    prompts = [runtime.encode(TEXT), runtime.encode(OTHER)]
    start = runtime.prefill_many(prompts)
    assert 2 * (len(prompts[0]) + 3) <= 45 < 3 * (len(prompts[0]) + 1)
    rooms.clear()
    once = runtime.branch(start, [0, 1, 0, 1, 1], [[5], [6], [7], [8], [9]])
    twice = runtime.branch(once, [1, 1, 2], [[3, 4], [4, 5], [5, 6]])
    assert rooms == {1: [1, 1], 45: [2, 2], 10_000: [5, 3]}[at_once]
    read = [[*prompts[1], 6, 3, 4], [*prompts[1], 6, 4, 5], [*prompts[0], 7, 5, 6]]
    joined = runtime.join([twice, once])
    on = runtime.step(twice, [[10], [11], [12]])
    for row, tokens in enumerate(read):
        wanted = runtime.logits(runtime.prefill(tokens))[0]
        np.testing.assert_allclose(runtime.logits(twice)[row], wanted, atol=1e-5)
        np.testing.assert_allclose(runtime.logits(joined)[row], wanted, atol=1e-5)
        wanted = runtime.logits(runtime.prefill([*tokens, 10 + row]))[0]
        np.testing.assert_allclose(runtime.logits(on)[row], wanted, atol=1e-5)
    again = runtime.pick(twice, [2, 0, 2])  # still branches, of which each goes on on its own
    wanted = [runtime.logits(runtime.prefill(read[row] + [14 + row]))[0] for row in (2, 0, 2)]
    np.testing.assert_allclose(runtime.logits(again), runtime.logits(twice)[[2, 0, 2]])
    found = runtime.logits(runtime.step(again, [[16], [14], [16]]))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    one = runtime.branch(start, [1], [[13]])  # nothing to share: it goes on in the trunk's own memory
    assert one.cache is start.cache
    np.testing.assert_allclose(
        runtime.logits(one), runtime.logits(runtime.prefill([*prompts[1], 13])), atol=1e-5
    )


def test_the_memory_of_short_branches_is_used_again(exact, monkeypatch):
    start, ways = exact.prefill(exact.encode(TEXT)), [[5], [6], [7]]
    first = exact.branch(start, [0, 0, 0], ways)
    (spare,) = exact._spare
    before = exact.logits(first).copy(), first.tails.copy()
    fewer = exact.branch(start, [0, 0], [[8], [9]])
    assert exact._spare[0] is spare
    more = exact.branch(start, [0] * 6, [[place] for place in range(5, 11)])
    assert exact._spare[0] is not spare and len(exact._spare) == 1
    assert (exact.logits(first) == before[0]).all() and (first.tails == before[1]).all()
    np.testing.assert_allclose(exact.logits(fewer), exact.logits(more)[3:5], atol=1e-5)
    monkeypatch.setattr("listenwell.runtime.onnx.engine.SPARE", 1)
    exact.branch(start, [0, 0], [[8], [9]])
    assert not exact._spare  # what is long keeps nothing


def test_a_cache_grows_when_its_room_is_used_up(exact):
    tokens = [(7 * place) % 300 + 3 for place in range(3 * ROOM)]
    state = exact.prefill(tokens[:2])
    for token in tokens[2:]:
        state = exact.step(state, [[token]])
    np.testing.assert_allclose(exact.logits(state), exact.logits(exact.prefill(tokens)), atol=1e-5)


@pytest.mark.parametrize(("words", "count"), [(3000, 40), (130, 5), (130, 129), (50, 80)])
def test_the_likeliest_are_found_quickly_and_right(words, count):
    logits = np.random.default_rng(0).standard_normal((3, words)).astype(np.float32) * 4
    logits[1] = np.round(logits[1])  # many are equal
    logits[2] = 1.5
    for name, quick, plain in zip(
        TopTokens._fields, top_tokens_of(logits, count), top_tokens_of(logits, words), strict=True
    ):
        wanted = plain if name == "totals" else plain[:, :count]
        np.testing.assert_allclose(quick, wanted, rtol=1e-6 if name == "totals" else 0)
        assert quick.dtype == wanted.dtype


def test_likelihoods_are_those_of_torch(exact, reference):
    prompt, replies = exact.encode(OTHER), [exact.encode(TEXT), [5], exact.encode(OTHER)]
    found = exact.log_likelihoods(prompt, replies)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, reference.log_likelihoods(prompt, replies), rtol=1e-5)
    assert exact.log_likelihoods(prompt, []).shape == (0,)


def test_a_long_reply_is_scored_in_parts(exact, monkeypatch):
    prompt, reply = exact.encode(OTHER), exact.encode(TEXT)
    whole = exact.log_likelihoods(prompt, [reply])
    monkeypatch.setattr("listenwell.runtime.onnx.engine.SCORED", 3)
    assert len(reply) > 6
    np.testing.assert_allclose(exact.log_likelihoods(prompt, [reply]), whole, rtol=1e-5)


def test_threads_share_an_engine_and_even_a_state(runtime):
    start = runtime.prefill(runtime.encode(OTHER))

    def go_on(token):
        state = start
        for _ in range(5):
            state = runtime.step(state, [[token]])
        return runtime.logits(state)[0]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(go_on, [5, 6, 7, 8] * 4))
    for token, logits in zip([5, 6, 7, 8] * 4, found, strict=True):
        wanted = runtime.logits(runtime.prefill([*runtime.encode(OTHER), *[token] * 5]))[0]
        np.testing.assert_allclose(logits, wanted, atol=1e-5)


def test_more_tokens_than_the_model_reads_are_a_clear_error(exact):
    assert exact.context_length == 512
    full = exact.prefill([5] * 512)
    with pytest.raises(InputError, match="512 tokens at most, but was given 513"):
        exact.step(full, [[5]])


def test_adapters_and_new_rows_are_merged(tiny_llama, tmp_path):
    """The same logits as peft's merged model with a larger vocabulary."""
    from peft import LoraConfig, get_peft_model
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_pretrained(tiny_llama)
    config = LoraConfig(r=3, lora_alpha=5, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(model, config).eval()
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    adapted.save_pretrained(tmp_path, save_embedding_layers=False)
    merged = adapted.merge_and_unload().eval()
    known, width = merged.get_input_embeddings().weight.shape
    rows = torch.randn(2, width)
    merged.resize_token_embeddings(known + 2, mean_resizing=False)
    with torch.no_grad():
        merged.get_input_embeddings().weight[-2:] = rows
        tokens = [5, known, 9, known + 1]
        wanted = merged(torch.tensor([tokens])).logits[:, -1].numpy()
    save_file({"rows": rows}, tmp_path / "added_tokens.safetensors")
    runtime = OnnxRuntime.load(tiny_llama, tmp_path, "fp32", threads=1)
    found = runtime.logits(runtime.prefill(tokens))
    assert found.shape == (1, known + 2)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_a_gguf_file_is_read_directly(tiny_gguf):
    from listenwell.runtime.weights import find_weights

    direct = OnnxRuntime.load(tiny_gguf, precision="fp32", threads=1)
    reference = TorchRuntime.from_folder(find_weights("smollm2-135m-instruct", tiny_gguf))
    tokens = reference.encode(TEXT)
    assert direct.encode(TEXT) == tokens
    wanted = reference.logits(reference.prefill(tokens))
    np.testing.assert_allclose(direct.logits(direct.prefill(tokens)), wanted, atol=1e-4)


def test_another_kind_of_model_is_refused(tiny_llama, tmp_path):
    import json
    import shutil

    folder = shutil.copytree(tiny_llama, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    for change, words in (
        ({"hidden_act": "gelu"}, "no plain Llama; what differs: hidden_act"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "of the kind 'yarn'"),
        ({"model_type": "gpt2"}, r"holds a 'gpt2' model\..*Llama, Qwen 2, Qwen 3, Gemma 2, Gemma 3"),
        ({"num_hidden_layers": 3}, r"lacks the weight 'model\.layers\.2"),
    ):
        (folder / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(WeightsError, match=words):
            OnnxRuntime.load(folder, precision="fp32")


def test_the_library_is_told_to_be_silent(exact):
    assert os.environ[TELEMETRY] == "1"
    assert 0 <= real_cores() <= (os.cpu_count() or 1)


def test_exact_middles_are_those_of_torch(exact, reference):
    tokens, other = reference.encode(TEXT), reference.encode(OTHER)
    found, wanted = (engine.hidden_states(engine.prefill(tokens)) for engine in (exact, reference))
    assert found.shape == (1, wanted.shape[1]) and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    replies = [other, tokens[:3], tokens * 9]
    means = [engine.mean_hidden_states(tokens, replies) for engine in (exact, reference)]
    np.testing.assert_allclose(means[0], means[1], atol=1e-4)
    assert exact.mean_hidden_states(tokens, []).shape == reference.mean_hidden_states(tokens, []).shape


def test_middles_go_with_their_rows(runtime):
    """However rows are picked, joined, branched and read on, each has the state of its own last token."""
    texts = [runtime.encode(text) for text in (TEXT, OTHER)]
    alone = [runtime.hidden_states(runtime.prefill([*tokens, 5]))[0] for tokens in texts]
    before = runtime.prefill_many(texts)
    ways = [
        runtime.step(before, [[5], [5]]),
        runtime.join([runtime.step(runtime.prefill(tokens), [[5]]) for tokens in texts]),
        runtime.branch(runtime.prefill_many(texts), [0, 1], [[5], [5]]),
    ]
    for state in ways:
        np.testing.assert_allclose(runtime.hidden_states(state), alone, atol=0.02)
        np.testing.assert_allclose(
            runtime.hidden_states(runtime.pick(state, [1, 0, 1])), [alone[n] for n in (1, 0, 1)], atol=0.02
        )


def test_the_mean_is_over_a_replys_own_tokens(exact):
    prompt, reply = exact.encode(TEXT), exact.encode(OTHER)
    state, each = exact.prefill(prompt), []
    for token in reply:
        state = exact.step(state, [[token]])
        each.append(exact.hidden_states(state)[0])
    np.testing.assert_allclose(exact.mean_hidden_states(prompt, [reply])[0], np.mean(each, 0), atol=1e-5)
