"""A generator that is elsewhere: any endpoint of OpenAI's kind, such as Ollama's or vLLM's.

Plans are given as instructions; who hears, chooses and guards stays here. What people say goes in as
messages of its own, never as part of the instruction.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2

from listenwell.dialogue import Candidate, Dialogue, Factors, Scored
from listenwell.errors import InputError, ListenwellError
from listenwell.generators.base import INSTRUCTION_NOTE, GeneratorOutput
from listenwell.labels import GROUP_MEMBERS, GROUP_OF_EMOTION

INSTRUCTION = (
    "You are a kind friend who listens. Answer the other person in one to three short sentences, as "
    "plain text. Do not give medical or legal advice, do not say that you are a human, promise nothing."
)
ACTS = {
    "acknowledging": "acknowledge what they said",
    "agreeing": "agree with them",
    "consoling": "console them",
    "encouraging": "encourage them",
    "questioning": "ask them one question about it",
    "suggesting": "suggest something gently",
    "sympathizing": "say that you feel with them",
    "wishing": "wish them well",
    "others": "simply answer",
}
MECHANISMS = {
    "emotional_reaction": "show warmth, compassion or concern",
    "interpretation": "say what you understand of their feelings or what they live through",
    "exploration": "gently explore what they have not said",
}
GLAD = ("prepared", "hopeful", "grateful", "excited", "proud", "sentimental", "trusting", "caring")
"""Groups of emotions that are no burden."""
PLANS_FOR_GLAD = ("acknowledging", "questioning", "encouraging", "wishing")
PLANS_FOR_SAD = ("sympathizing", "questioning", "acknowledging", "consoling", "encouraging")
LARGEST = 1 << 20
"""Bytes of an answer; a longer one is not read."""
_NEXT_SEED = 1_000_003
MOST_MESSAGES = 1000
"""Messages of one request."""


class RemoteError(ListenwellError):
    """The endpoint behind the service failed."""

    status = 502


@dataclass(frozen=True)
class RemoteConfig:
    """Which endpoint, and how it is asked."""

    base_url: str
    """Up to and with /v1."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    plans: int = 3
    """How many different plans are worded, a request for each."""
    temperature: float = 0.7
    max_tokens: int = 160
    seconds: float = 120.0
    """That an answer may take."""
    at_once: int = 8
    """Requests under way at a time."""

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise InputError(
                "The base URL is no http address.", "Give one such as http://127.0.0.1:11434/v1."
            )
        if not self.model:
            raise InputError("The endpoint's model has no name.", "Name it with --model.")
        if not 1 <= self.plans <= 16 or self.at_once < 1:
            raise InputError(f"plans is {self.plans}.", "Give 1 to 16.")


class Remote:
    """Fills the listener's places *plan* and *speak*.

    Args:
        config: of the endpoint.
        client: another way to reach it.
    """

    def __init__(self, config: RemoteConfig, client: httpx2.Client | None = None) -> None:
        self.config, self.name = config, f"{config.model} (remote)"
        headers = {"Authorization": f"Bearer {config.api_key}"} if config.api_key else {}
        self._client = client or httpx2.Client(timeout=config.seconds, headers=headers)
        self._threads = ThreadPoolExecutor(config.at_once, "remote")

    def plan(
        self, dialogue: Dialogue, emotion: Sequence[Scored] | None, want: Factors, seed: int
    ) -> tuple[Factors, ...]:
        """Plans that differ in what the reply does; the emotion is what was heard."""
        felt = want.emotion or (emotion[0].label if emotion else None)
        want = replace(want, emotion=felt)
        if want.act is not None:
            return (want,)
        is_glad = felt is not None and GROUP_OF_EMOTION[felt] in GLAD
        acts = (PLANS_FOR_GLAD if is_glad else PLANS_FOR_SAD)[: self.config.plans]
        return tuple(replace(want, act=act) for act in acts)

    def generate(
        self,
        dialogue: Dialogue,
        plans: Sequence[Factors],
        seed: int,
        on_text: Callable[[str], None] | None = None,
    ) -> GeneratorOutput:
        """A reply for each plan, or one without; no two have the same words."""
        speech = self.generate_batch([(dialogue, plans, seed)])[0]
        if on_text:
            on_text(speech.candidates[0].text)
        return speech

    def generate_batch(
        self, asked: Sequence[tuple[Dialogue, Sequence[Factors], int]]
    ) -> list[GeneratorOutput]:
        """The same for several dialogues, all requests at once."""
        jobs = [
            (row, plan, self._threads.submit(self._generation, dialogue, plan, seed + number * _NEXT_SEED))
            for row, (dialogue, plans, seed) in enumerate(asked)
            for number, plan in enumerate(plans or (None,))
        ]
        found: list[dict[str, Candidate]] = [{} for _ in asked]
        for row, plan, job in jobs:
            text = job.result()
            if text:
                found[row].setdefault(text, Candidate(text, plan))
        if not all(found):
            raise RemoteError("The endpoint answered without words.", "Try again, or use another model.")
        return [GeneratorOutput(tuple(candidates.values())) for candidates in found]

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
    """The reply in a chat completion; anything else is an error."""
    import json

    try:
        found = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        found = None
    if not isinstance(found, str):
        raise RemoteError(
            "The endpoint's answer is no chat completion.", "Check that --base-url ends in /v1."
        )
    return found.encode("utf-8", "replace").decode().strip()


def messages(dialogue: Dialogue, plan: Factors | None) -> list[dict[str, Any]]:
    """The dialogue as messages, after the instruction, the persona and the plan."""
    parts = [INSTRUCTION]
    persona = dialogue.persona_of(dialogue.listener)
    if persona and persona.lines:
        parts += ["About yourself:", *persona.lines]
    parts += [value for name, value in dialogue.notes if name == INSTRUCTION_NOTE]
    if plan and (told := instruction(plan)):
        parts.append(told)
    said = [
        {"role": "assistant" if turn.speaker == dialogue.listener else "user", "content": turn.text}
        for turn in dialogue.turns[1 - MOST_MESSAGES :]
    ]
    return [{"role": "system", "content": "\n".join(parts)}, *said]


def instruction(plan: Factors) -> str:
    """A plan in words, for a model that was never taught ours."""
    parts = [f"They feel {_near(plan.emotion)}."] if plan.emotion else []
    if plan.mechanisms:
        parts.append(f"In your reply, {'; '.join(MECHANISMS[name] for name in plan.mechanisms)}.")
    if plan.act:
        parts.append(f"Above all, {ACTS[plan.act]}.")
    if plan.tone and plan.tone != "neutral":
        parts.append(f"Let {plan.tone} be heard in it.")
    return " ".join(parts)


def _near(emotion: str) -> str:
    """An emotion, and the group of near ones where it is not its own."""
    group = GROUP_OF_EMOTION[emotion]
    return emotion if group == emotion or emotion not in GROUP_MEMBERS[group] else f"{emotion} ({group})"
