"""Ranking by likelihood: how much a context makes a reply likelier than it is anyway.

log P(y|x) − log P(y), the mutual information of Li et al. (2016): a generator that also learned replies
without their contexts (`alone` in its recipe) knows both.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from listenwell.checkpoint import open_checkpoint
from listenwell.dialogue import Dialogue
from listenwell.errors import CheckpointError
from listenwell.generators.prompt_template import build_prompt, with_short_persona
from listenwell.rankers import GENERATOR_SCORERS
from listenwell.rankers.scorer import checkpoint_key
from listenwell.runtime.chat_format import ASSISTANT, Chat

if TYPE_CHECKING:
    from listenwell.runtime.torch_engine import TorchRuntime

PROMPT_TOKENS, REPLY_TOKENS = 384, 96


class Likelihood:
    """A generator as a ranker; `prior` is the share of log P(y) that is taken off.

    0 ranks by likelihood alone, 1 by mutual information.
    """

    name = "likelihood"

    def __init__(self, runtime: "TorchRuntime", key: str, prior: float = 1.0) -> None:
        self._runtime, self.key, self._prior = runtime, f"{key}-{prior:g}", prior
        self._alone: dict[str, float] = {}

    @classmethod
    def load(cls, folder: Path, prior: float = 1.0) -> "Likelihood":
        """From the checkpoint of a generator that was trained with `alone` above 0.

        A planned generator is asked without a plan: it stands there for all plans together.
        """
        from listenwell.generators.vanilla import runtime_of
        from listenwell.runtime.engines import Engine

        saved = open_checkpoint(folder)
        if saved.kind not in GENERATOR_SCORERS:
            raise CheckpointError(
                f"{folder} holds a {saved.kind!r} checkpoint, no generator's.", "Name another folder."
            )
        runtime = cast("TorchRuntime", runtime_of(saved, Engine("torch")))
        runtime.use_gpu()  # pools are large
        return cls(runtime, checkpoint_key(folder), prior)

    def score(self, contexts: Sequence[Dialogue], replies: Sequence[str]) -> np.ndarray:
        """(contexts, replies) float32"""
        vocabulary = self._runtime.vocabulary
        end = Chat(vocabulary).end
        tokens = [[*ids[:REPLY_TOKENS], end] for ids in vocabulary.encode_many(replies)]
        short = [with_short_persona(vocabulary, context, PROMPT_TOKENS // 2) for context in contexts]
        prompts = [build_prompt(vocabulary, context, "", PROMPT_TOKENS).tokens for context in short]
        log_likelihoods = self._runtime.log_likelihoods_of(prompts, tokens)
        return log_likelihoods - self._prior * self._priors(replies, tokens)

    def _priors(self, replies: Sequence[str], tokens: Sequence[Sequence[int]]) -> np.ndarray:
        """log P(y) of each reply; asked once."""
        new = {text: ids for text, ids in zip(replies, tokens, strict=True) if text not in self._alone}
        if new and self._prior:
            chat = Chat(self._runtime.vocabulary)
            head = [*chat.begin, *chat.head(ASSISTANT)]
            self._alone |= dict(
                zip(new, map(float, self._runtime.log_likelihoods(head, list(new.values()))), strict=True)
            )
        return np.array([self._alone.get(text, 0.0) for text in replies], np.float32)
