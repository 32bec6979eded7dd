"""The remote generator: any endpoint with OpenAI's API, such as Ollama's or vLLM's.

Plans become instructions; all other stages stay here. What people write is sent as messages of its own, never
as part of the instruction.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from listenwell.dialogue import INSTRUCTION as INSTRUCTION_NOTE
from listenwell.dialogue import Candidate, Dialogue, Factors
from listenwell.errors import InputError, ListenwellError
from listenwell.generators.base import NEXT_SEED, Generator
from listenwell.generators.instructions import instruction, plans_for
from listenwell.pipeline import Emotions, GenerateRequest, GeneratorOutput, OnText, Plan

INSTRUCTION = (
    "You are a kind friend who listens. Answer the other person in one to three short sentences, as "
    "plain text. Do not give medical or legal advice, do not say that you are a human, promise nothing."
)
LARGEST = 1 << 20
"""Bytes of a response; a longer one is an error."""
MAX_MESSAGES = 1000
"""Older turns are left out of a request."""


class RemoteError(ListenwellError):
    """The endpoint behind the service failed."""

    status = 502


@dataclass(frozen=True)
class RemoteConfig:
    """The endpoint, and the settings of its requests."""

    base_url: str
    """Up to and including /v1."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    plans: int = 3
    """How many different plans are tried, with a request for each."""
    temperature: float = 0.7
    max_tokens: int = 160
    seconds: float = 120.0
    """The timeout of a request."""
    at_once: int = 8
    """How many requests run at a time."""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise InputError(
                "The base URL is no http address.", "Give one such as http://127.0.0.1:11434/v1."
            )
        if not self.model:
            raise InputError("The endpoint's model has no name.", "Name it with --model.")
        if not 1 <= self.plans <= 16 or self.at_once < 1:
            raise InputError(f"plans is {self.plans}.", "Give 1 to 16.")


class Remote(Generator, Plan):
    """Fills the stages *plan* and *generate*."""

    Config = RemoteConfig

    def __init__(self, config: RemoteConfig, client: httpx2.Client | None = None) -> None:
        self.config, self.name = config, f"{config.model} (remote)"
        headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        self._client = client or httpx2.Client(timeout=config.seconds, headers=headers)
        self._threads = ThreadPoolExecutor(config.at_once, "remote")

    def plan(
        self, dialogue: Dialogue, emotion: Emotions | None, target: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """Plans with different acts; the emotion is the annotators'."""
        return plans_for(emotion, target, self.config.plans)

    def generate(
        self, dialogue: Dialogue, plans: Sequence[Factors], seed: int, on_text: OnText | None = None
    ) -> GeneratorOutput:
        """A reply for each plan, or one without; no two have the same text."""
        return self.generate_batch([(dialogue, plans, seed)], on_text)[0]

    def generate_batch(
        self, requests: Sequence[GenerateRequest], on_text: OnText | None = None
    ) -> list[GeneratorOutput]:
        """`generate` for several dialogues, with all HTTP requests at once."""
        jobs = [
            (row, plan, self._threads.submit(self._generation, dialogue, plan, seed + number * NEXT_SEED))
            for row, (dialogue, plans, seed) in enumerate(requests)
            for number, plan in enumerate(plans or (None,))
        ]
        candidates: list[dict[str, Candidate]] = [{} for _ in requests]
        for row, plan, job in jobs:
            if text := job.result():
                candidates[row].setdefault(text, Candidate(text, plan))
        if not all(candidates):
            raise RemoteError("The endpoint's reply is empty.", "Try again, or use another model.")
        if on_text:
            on_text(next(iter(candidates[0])))
        return [GeneratorOutput(tuple(proposed.values())) for proposed in candidates]

    def _generation(self, dialogue: Dialogue, plan: Factors | None, seed: int) -> str:
        body = {
            "model": self.config.model,
            "messages": messages(dialogue, plan),
            "temperature": self.config.temperature,
            "max_tokens": self.config.max_tokens,
            "seed": seed % 2**31,
            "stream": False,
        }
        address = f"{self.config.base_url.rstrip('/')}/chat/completions"
        try:
            with self._client.stream("POST", address, json=body) as response:
                content = _read(response)
        except httpx2.HTTPError as error:
            raise RemoteError(
                f"The endpoint did not answer: {type(error).__name__}.",
                "Check that it runs and that --base-url is its address.",
            ) from None
        if response.status_code != 200:
            raise RemoteError(
                f"The endpoint answered with status {response.status_code}.",
                "Check --base-url, the model's name and the key, or try again later.",
            )
        return words_of(content)


def _read(response: httpx2.Response) -> bytes:
    content = b""
    for part in response.iter_bytes():
        content += part
        if len(content) > LARGEST:
            raise RemoteError("The endpoint's answer is too long.", "Use another endpoint.")
    return content


def words_of(content: bytes) -> str:
    """The text of a chat completion; anything else is an error."""
    try:
        content_text = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        content_text = None
    if not isinstance(content_text, str):
        raise RemoteError(
            "The endpoint's answer is no chat completion.", "Check that --base-url ends in /v1."
        )
    return content_text.encode("utf-8", "replace").decode().strip()


def messages(dialogue: Dialogue, plan: Factors | None) -> list[dict[str, Any]]:
    """The dialogue as messages, after the instruction, the persona and the plan."""
    parts = [INSTRUCTION]
    persona = dialogue.persona_of(dialogue.listener)
    if persona and persona.lines:
        parts += ["About yourself:", *persona.lines]
    if own := dialogue.note(INSTRUCTION_NOTE):
        parts.append(own)
    if plan and (words := instruction(plan)):
        parts.append(words)
    recent = replace(dialogue, turns=dialogue.turns[1 - MAX_MESSAGES :], personas=(), notes=())
    return [{"role": "system", "content": "\n".join(parts)}, *recent.to_messages()]
