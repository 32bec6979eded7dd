"""OpenAI's clients, unchanged, against the running service."""

import importlib.util
import json
import os
import subprocess
import sys

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from listenwell.dialogue import INSTRUCTION as INSTRUCTION_NOTE
from listenwell.dialogue import Candidate, Dialogue, Reply, Turn
from listenwell.generators.remote import messages as remote_messages
from listenwell.serving import openai_api
from listenwell.serving.openai_api import (
    NOT_FOLLOWED,
    NOT_TRUNCATED,
    choices_of,
    split_system_message,
    truncated,
)
from listenwell.serving.service import Service
from listenwell.serving.streaming import chunks
from tests.serving.fake import FakeListener, fake_app, fake_settings, running

KEY = "k" * 20
HELLO = [{"role": "user", "content": "I won!"}]


@pytest.fixture(scope="module")
def listener():
    return FakeListener()


@pytest.fixture(scope="module")
def url(listener):
    app = fake_app(
        fake_settings(models=("fake", "broken"), api_key=KEY, heartbeat=0.02),
        factory=lambda name: listener if name == "fake" else FakeListener(plan=None),
    )
    with running(app) as address:
        yield f"{address}/v1"


@pytest.fixture(scope="module")
def client(url):
    with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0) as made:
        yield made


def test_models_are_listed(client):
    assert [model.id for model in client.models.list()] == ["fake", "broken"]
    assert client.models.retrieve("fake").owned_by == "listenwell"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-4")


def test_a_whole_completion(client):
    found = client.chat.completions.create(
        model="fake", messages=HELLO, seed=5, temperature=0.3, max_tokens=9, user="anna"
    )
    assert found.object == "chat.completion"
    (choice,) = found.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "You said: I won!")
    assert choice.finish_reason == "stop"
    assert found.usage.prompt_tokens == 2
    assert found.usage.completion_tokens == 4
    assert found.listenwell["seed"] == 5
    assert found.listenwell["emotion"][0]["label"] == "proud"
    assert found.listenwell["warnings"] == ["temperature is not supported and was ignored."]


def test_n_gives_the_reranked_candidates(client):
    found = client.chat.completions.create(model="fake", messages=HELLO, n=3)
    texts = [(choice.index, choice.message.content) for choice in found.choices]
    assert texts == [(0, "You said: I won!"), (1, "Well done!")]  # two candidates are all there are
    assert found.usage.completion_tokens == 6
    (alone,) = client.chat.completions.create(model="fake", messages=HELLO, n=1).choices
    assert alone.message.content == "You said: I won!"


def test_n_in_a_stream(client):
    stream = client.chat.completions.create(model="fake", messages=HELLO, n=2, stream=True)
    texts, reasons = {0: "", 1: ""}, {}
    for chunk in stream:
        (choice,) = chunk.choices
        texts[choice.index] += choice.delta.content or ""
        if choice.finish_reason:
            reasons[choice.index] = choice.finish_reason
    assert texts == {0: "You said: I won!", 1: "Well done!"}
    assert reasons == {0: "stop", 1: "stop"}
    assert chunk.listenwell["warnings"] == []


def test_only_candidates_that_may_be_shown_are_choices():
    texts = ["That sounds hard.", "You should sue them.", " ", "That sounds hard.", "What happened?"]
    reply = Reply(texts[0], "m", 1, candidates=tuple(map(Candidate, texts)))
    assert choices_of(reply, 5) == ("That sounds hard.", "What happened?")
    assert choices_of(reply, 1) == ("That sounds hard.",)


def test_in_a_crisis_there_is_one_answer_and_it_is_whole(client):
    messages = [{"role": "user", "content": "CRISIS"}]
    found = client.chat.completions.create(model="fake", messages=messages, n=2, max_tokens=2)
    assert [choice.message.content for choice in found.choices] == ["I am worried about you."]
    assert found.choices[0].finish_reason == "stop"
    assert NOT_TRUNCATED in found.listenwell["warnings"]


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_token_limit_ends_the_reply_at_a_word(client, name, stream):
    found = client.chat.completions.create(model="fake", messages=HELLO, stream=stream, **{name: 3})
    if stream:
        streamed = list(found)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed)
        reason = streamed[-1].choices[0].finish_reason
    else:
        text, reason = found.choices[0].message.content, found.choices[0].finish_reason
    assert (text, reason) == ("You said: I", "length")


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (9, "I am sorry. Did he call? You must be sad."),
        (6, "I am sorry. Did he call?"),
        (5, "I am sorry."),
        (2, "I am"),
        (0, ""),
    ],
)
def test_truncation_prefers_whole_sentences(limit, text):
    reply = "I am sorry. Did he call? You must be sad."
    assert truncated(reply, limit if limit < 9 else 10, lambda part: len(part.split())) == text


def test_a_truncated_reply_is_filtered_again(monkeypatch):
    monkeypatch.setattr(openai_api, "faults", lambda text: ("fault",) if text.endswith("two") else ())
    assert truncated("one two three four", 3, lambda part: len(part.split())) == "one two three"
    assert truncated("one two three four", 2, lambda part: len(part.split())) == "one"


def test_an_instruction_is_passed_on_where_it_can_be_followed(client, listener, monkeypatch):
    monkeypatch.setattr(Service, "follows_instructions", lambda self, model: True)
    system = {"role": "system", "content": "Answer in rhymes. I work as a nurse."}
    found = client.chat.completions.create(model="fake", messages=[system, *HELLO])
    assert found.listenwell["warnings"] == []
    assert listener.seen[-1].note(INSTRUCTION_NOTE) == "Answer in rhymes."
    dialogue = Dialogue((Turn("speaker", "Hi"),), notes=((INSTRUCTION_NOTE, "Answer in rhymes."),))
    assert "Answer in rhymes." in remote_messages(dialogue, None)[0]["content"]


@pytest.mark.parametrize(
    "change",
    [
        {"response_format": {"type": "json_object"}},
        {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required"},
    ],
)
def test_what_would_mislead_is_an_error(client, change):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="fake", messages=HELLO, **change)
    assert caught.value.body["code"] == "unsupported_parameter"


def test_what_is_ignored_is_named(client):
    found = client.chat.completions.create(
        model="fake",
        messages=HELLO,
        logprobs=True,
        stop=["\n"],
        tool_choice="none",
        response_format={"type": "text"},
        logit_bias={},
    )
    assert found.listenwell["warnings"] == [
        "logprobs is not supported and was ignored.",
        "stop is not supported and was ignored.",
    ]


def test_the_first_model_has_an_alias(client):
    assert client.chat.completions.create(model="listenwell", messages=HELLO).model == "fake"


def test_a_streamed_completion(client):
    stream = client.chat.completions.create(
        model="fake", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "You said: I won!"
    assert len([text for text in texts if text]) == 4
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-2].listenwell["safety"] is None
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 6
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_slow_reply_shows_life_and_still_streams(client, listener):
    listener.seconds = 0.2
    try:
        stream = client.chat.completions.with_raw_response.create(model="fake", messages=HELLO, stream=True)
        raw = stream.http_response.read().decode()
    finally:
        listener.seconds = 0
    assert raw.count(": waiting\n\n") >= 3
    assert raw.endswith("data: [DONE]\n\n")
    assert raw.index("assistant") < raw.index(": waiting") < raw.index("You")


def test_steering_and_persona_through_the_same_client(client, listener):
    found = client.chat.completions.create(
        model="fake",
        messages=[
            {"role": "system", "content": "You are a pirate. I work as a nurse.\nMy cat is old."},
            *HELLO,
        ],
        extra_body={"target": {"act": "wishing"}, "persona": ["I bake."]},
    )
    assert found.listenwell["plan"]["act"] == "wishing"
    assert NOT_FOLLOWED in found.listenwell["warnings"]
    lines = listener.seen[-1].persona_of("listener").lines
    assert lines == ("I bake.", "I work as a nurse.", "My cat is old.")


def test_parts_and_empty_messages(client, listener):
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": "four"},
    ]
    client.chat.completions.create(model="fake", messages=messages)
    turns = [(turn.speaker, turn.text) for turn in listener.seen[-1].turns]
    assert turns == [("speaker", "one\ntwo"), ("listener", "three"), ("speaker", "four")]


def test_a_long_talk_is_read_from_its_end(client, listener):
    messages = [{"role": "user", "content": str(number)} for number in range(300)]
    found = client.chat.completions.create(model="fake", messages=messages)
    assert [turn.text for turn in listener.seen[-1].turns] == [str(number) for number in range(99, 300)]
    assert "Only the last 201 messages were read." in found.listenwell["notices"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "gpt-4"}, openai.NotFoundError),
        ({"messages": []}, openai.UnprocessableEntityError),
        ({"messages": [{"role": "assistant", "content": "me"}]}, openai.UnprocessableEntityError),
        ({"messages": [{"role": "user", "content": "  "}]}, openai.UnprocessableEntityError),
        ({"n": 0}, openai.UnprocessableEntityError),
        ({"max_tokens": 0}, openai.UnprocessableEntityError),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            openai.UnprocessableEntityError,
        ),
        ({"messages": [{"role": "user", "content": "FAIL"}]}, openai.InternalServerError),
        ({"model": "broken", "extra_body": {"target": {"act": "wishing"}}}, openai.APIStatusError),
    ],
)
def test_errors_are_those_the_client_knows(client, change, error):
    with pytest.raises(error) as caught:
        client.chat.completions.create(**({"model": "fake", "messages": HELLO} | change))
    assert caught.value.body["message"]


def test_an_error_in_a_stream_reaches_the_client(client):
    messages = [{"role": "user", "content": "INPUT"}]
    with pytest.raises(openai.APIError, match="cannot be answered"):
        list(client.chat.completions.create(model="fake", messages=messages, stream=True))


def test_a_wrong_key_is_refused(url):
    with openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(model="fake", messages=HELLO)


@pytest.mark.parametrize("options", [[], ["--no-stream"]])
def test_the_llm_command_line_tool(url, tmp_path, options):
    if importlib.util.find_spec("llm") is None:
        pytest.skip("needs the package llm, which the extra dev installs")
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: ours\n  model_name: fake\n  api_base: {url}\n  api_key_name: ours\n"
    )
    (tmp_path / "keys.json").write_text(json.dumps({"ours": KEY}))
    # Without plugins: the base model's wheel is one, and needs a library that we do not.
    environment = os.environ | {"LLM_USER_PATH": str(tmp_path), "LLM_LOAD_PLUGINS": ""}
    found = subprocess.run(
        [sys.executable, "-m", "llm", "prompt", "-m", "ours", *options, "I won!"],
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stdout.strip() == "You said: I won!", found.stderr


@given(st.text())
def test_chunks_join_to_the_text(text):
    assert "".join(chunks(text)) == text


@given(st.text())
def test_sentences_of_a_system_message_are_parts_of_it(text):
    own, others = split_system_message(text)
    assert all(sentence in text and sentence.strip() for sentence in (*own, *others))


def test_only_the_first_person_is_a_persona():
    assert split_system_message("I'm kind. You are kind! We sing.\n\nIt rains. Inside I cry") == (
        ["I'm kind.", "We sing."],
        ["You are kind!", "It rains.", "Inside I cry"],
    )
