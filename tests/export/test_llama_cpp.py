"""llama.cpp runs an exported generator: it reads the same tokens, and goes on with the same ones."""

from itertools import islice

import numpy as np
import pytest

from listenwell.checkpoint import find_checkpoint, open_checkpoint
from listenwell.dialogue import SPEAKER, Dialogue, Persona, Turn
from listenwell.export import TEMPLATE, merged, write_gguf
from listenwell.generators.planned import SHIPPED
from listenwell.generators.prompt_template import build_prompt
from listenwell.generators.vanilla import runtime_of
from listenwell.runtime.engines import Engine

llama_cpp = pytest.importorskip(
    "llama_cpp", reason="llama.cpp is not installed: pip install llama-cpp-python compiles it for minutes"
)

NEW = 24
PLAN = ("<|emotion:sad|>", "<|mechanisms:ER+EX|>", "<|act:consoling|>", "<|tone:caring|>")
TALKS = (
    ("My dog died.",),
    ("I got the job!!  After 12 interviews…", "Wow, how did you do it?", "I don't know,\nmaybe luck?"),
    ("ça va? 你好 🙂 <b>",),
)


def open_speaker(folder, file):
    """Our engine, exact, and llama.cpp with the exported file."""
    saved = open_checkpoint(find_checkpoint(folder))
    write_gguf(merged(saved), file, "speaker")
    theirs = llama_cpp.Llama(str(file), n_ctx=512, logits_all=True, verbose=False)
    return runtime_of(saved, Engine("onnx", "fp32")), theirs


@pytest.fixture(scope="module", params=["tiny", "shipped"])
def engines(request, tiny_generator, weights_cache, tmp_path_factory):
    """Both engines, for a generator that learned nothing and for the one that we ship."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LISTENWELL_CACHE", str(weights_cache))
        folder = tiny_generator if request.param == "tiny" else SHIPPED
        yield open_speaker(folder, tmp_path_factory.mktemp("gguf") / "speaker.gguf")


def said(texts):
    """A dialogue, and the same as messages."""
    turns = [
        Turn(SPEAKER if place % 2 == 0 else "listener", text) for place, text in enumerate(reversed(texts))
    ][::-1]
    roles = ["user" if turn.speaker == SPEAKER else "assistant" for turn in turns]
    messages = [{"role": role, "content": turn.text} for role, turn in zip(roles, turns, strict=True)]
    dialogue = Dialogue(tuple(turns), personas=(Persona("listener", ("I sing.",)),))
    return dialogue, [{"role": "system", "content": "About you: I sing."}, *messages]


def rendered(messages, plan):
    """The chat template, as any engine fills it in."""
    jinja2 = pytest.importorskip("jinja2")  # comes with llama-cpp-python
    template = jinja2.Environment(keep_trailing_newline=True).from_string(TEMPLATE)
    return template.render(messages=messages, add_generation_prompt=True, plan=plan)


@pytest.mark.parametrize("plan", [(), PLAN], ids=["its own plan", "a given plan"])
@pytest.mark.parametrize("texts", TALKS)
def test_the_same_tokens_are_read_and_said(engines, texts, plan):
    ours, theirs = engines
    dialogue, messages = said(texts)
    prompt = [*build_prompt(ours.vocabulary, dialogue, "", 400).tokens, *map(ours.vocabulary.special, plan)]
    text = rendered(messages, "".join(plan)).encode()
    assert theirs.tokenize(text, add_bos=False, special=True) == prompt
    state, wanted = ours.prefill(prompt), []
    for _ in range(NEW):
        wanted.append(int(ours.likeliest(state, 1).tokens[0, 0]))
        state = ours.step(state, [wanted[-1:]])
    theirs.reset()
    assert list(islice(theirs.generate(prompt, temp=0.0), NEW)) == wanted


@pytest.mark.parametrize("texts", TALKS)
def test_the_scores_are_the_same(engines, texts):
    """Weights have 16 bits in the file, and llama.cpp multiplies with no more."""
    ours, theirs = engines
    prompt = list(build_prompt(ours.vocabulary, said(texts)[0], "", 400).tokens)
    theirs.reset()
    theirs.eval(prompt)
    found, wanted = theirs.scores[len(prompt) - 1], ours.logits(ours.prefill(prompt))[0]
    np.testing.assert_allclose(found, wanted, atol=0.02 * np.ptp(wanted))
    assert np.corrcoef(found, wanted)[0, 1] > 0.9999


def test_a_chat_needs_nothing_of_ours(engines):
    ours, theirs = engines
    dialogue, messages = said(TALKS[0])
    made = theirs.create_chat_completion(messages, temperature=0.0, max_tokens=NEW)
    state, wanted = ours.prefill(build_prompt(ours.vocabulary, dialogue, "", 400).tokens), []
    end = ours.vocabulary.special("<|im_end|>")
    while len(wanted) < NEW and end not in wanted:
        wanted.append(int(ours.likeliest(state, 1).tokens[0, 0]))
        state = ours.step(state, [wanted[-1:]])
    # Plan tokens and marks are special: they are left out of the text.
    words = [token for token in wanted if token not in ours.vocabulary.special_ids]
    assert made["choices"][0]["message"]["content"] == ours.vocabulary.decode(words)
