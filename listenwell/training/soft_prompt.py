"""Teaching a voice: a few tokens before the plan that make a generator say what raters like better.

Prompt tuning (Lester et al. 2021) by direct preference optimization (DPO, Rafailov et al. 2023, Eq. 7): the
generator without a voice is where gains are counted from, and its weights stay as they are, so that what it
plans and how likely it finds people's replies cannot get worse. What is saved is the generator with its voice.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from listenwell.checkpoint import open_checkpoint
from listenwell.errors import RecipeError
from listenwell.generators.plans import LEVELS
from listenwell.preference.pairs import Pair
from listenwell.runtime.added_tokens import AddedTokens
from listenwell.runtime.names import ADAPTER, ADAPTER_CONFIG, ADDED_TOKENS, SOFT_PROMPT
from listenwell.training.pair_batch import PairExample
from listenwell.training.preference import PreferenceTask
from listenwell.training.recipe import TrainRecipe
from listenwell.training.tokens import Encoded

WORDS = (" understanding", " specific", " kind", " honest", " warm", " clear", " caring", " attentive")
"""What the tokens begin as, over and over."""
_SPEAKER = (ADAPTER_CONFIG, ADAPTER, ADDED_TOKENS, "tokenizer.json")


class SoftPromptTask(PreferenceTask):
    """A trained planned generator, and the voice that it is given."""

    _soft_prompt: np.ndarray | None = None  # its tokens' numbers, once it is there

    @classmethod
    def prepare(cls, recipe: TrainRecipe, device: torch.device) -> "SoftPromptTask":
        """Load the generator, work out how likely all replies are to it, then put the voice there."""
        if recipe.lora is None:
            raise RecipeError("A voice is learned for an adapter.", "Give the recipe the speaker's `lora`.")
        task = super().prepare(recipe, device)
        assert isinstance(task, cls)
        task.add_soft_prompt()
        return task

    def begin_from(self, start: Path) -> Path:
        """Take a trained planned speaker's weights, and its voice, if it has one; gives its manifest."""
        manifest = super().begin_from(start)
        self._speaker = open_checkpoint(manifest.parent)
        return manifest

    def add_soft_prompt(self) -> None:
        """Let the generator read a voice, which alone is trained."""
        base, old = self._base(), self._base().get_input_embeddings()
        known = torch.cat([old.known, old.rows.detach()])
        count, words = self._settings.soft_prompt, [self.vocabulary.encode(word)[0] for word in WORDS]
        rows = known[[words[place % len(words)] for place in range(count)]]
        self.model.requires_grad_(False)
        base.set_input_embeddings(AddedTokens(known, rows).to(self.device))
        self._soft_prompt = np.arange(len(known), len(known) + count, dtype=np.int32)
        if SOFT_PROMPT in self._speaker.sums:
            self.load(self._speaker.folder)
        self._pairs, self._held_out = (
            [
                replace(
                    one,
                    chosen=self._with_soft_prompt(one.chosen),
                    rejected=self._with_soft_prompt(one.rejected),
                )
                for one in some
            ]
            for some in (self._pairs, self._held_out)
        )

    def save(self, folder: Path) -> None:
        """The speaker's files as they were, and the voice."""
        from safetensors.torch import save_file

        for name in _SPEAKER:
            if name in self._speaker.sums:
                shutil.copyfile(self._speaker.path(name), folder / name)
        save_file(
            {"rows": self._base().get_input_embeddings().rows.detach().half().cpu()}, folder / SOFT_PROMPT
        )

    def load(self, folder: Path) -> None:
        """Take the voice of a checkpoint that `save` wrote; before there is one, a speaker's weights."""
        from safetensors.torch import load_file

        if self._soft_prompt is None:
            super().load(folder)
            return
        embeddings, rows = self._base().get_input_embeddings(), load_file(folder / SOFT_PROMPT)["rows"]
        if rows.shape != embeddings.rows.shape:
            raise RecipeError(
                f"{folder} has a voice of {len(rows)} tokens.", f"Give preference.voice {len(rows)}."
            )
        with torch.no_grad():
            embeddings.rows.copy_(rows)

    def conditions(self) -> dict[str, str]:
        """How the voice was learned."""
        return super().conditions() | {
            "tuning": f"a voice of {self._settings.soft_prompt} tokens; the speaker's weights stay",
            "measured": "perplexity without the voice, which is the speaker's; preferences with it",
        }

    def _head(self) -> Sequence[torch.Tensor]:
        embeddings = self._base().get_input_embeddings()
        # A voice can be read and not said.
        return super()._head() if self._soft_prompt is None else (embeddings.known,)

    def _piece(self, pair: Pair, limit: int) -> PairExample:
        return super()._piece(pair, limit - self._settings.soft_prompt)

    def _with_soft_prompt(self, sequence: Encoded) -> Encoded:
        """The same with the voice before its plan, which stands before the first token that counts."""
        at, soft_prompt = int(sequence.targets.argmax()) - len(LEVELS), self._soft_prompt
        assert soft_prompt is not None
        return replace(
            sequence,
            tokens=np.insert(sequence.tokens, at, soft_prompt),
            targets=np.insert(sequence.targets, at, np.zeros(len(soft_prompt), bool)),
        )
