"""The `Runtime` of CoMAE: tokens are read with who says them, and a reply's carry its plan (Eqs. 2, 9)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from listenwell.papers.comae.inputs import COLUMNS, NOTHING, Inputs
from listenwell.papers.comae.model import ComaeModel
from listenwell.runtime.text import Vocabulary
from listenwell.runtime.torch_engine import TorchRuntime, TorchState


@dataclass(frozen=True)
class ComaeState(TorchState):
    """What was read so far, a row for each dialogue or reply."""

    last: torch.Tensor  # (rows, width): the last token's hidden state; after a context, h_x
    fused: torch.Tensor  # (rows, width): e_CoMAE of the row's plan; zero before there is one


class ComaeRuntime(TorchRuntime):
    """A CoMAE model as an engine, in float32; on a GPU after `use_gpu`.

    `read` takes contexts, `begin` plans; from there on the one decoder goes on as with any engine.
    """

    def __init__(self, model: ComaeModel, vocabulary: Vocabulary) -> None:
        self._model = model.eval()
        self.vocabulary, self.inputs = vocabulary, Inputs(vocabulary, model.config)
        self.context_length = int(model.decoder.config.max_position_embeddings)

    @property
    def model(self) -> ComaeModel:
        """The module, wherever it is."""
        model: ComaeModel = self._model
        return model

    def read(self, contexts: Sequence[np.ndarray]) -> ComaeState:
        """Read contexts (columns of `Inputs.context`), a row each; shorter ones are filled up on the left."""
        shape = (len(contexts), max(map(len, contexts)))
        columns, known = np.full((*shape, COLUMNS), NOTHING, np.int64), np.zeros(shape, np.int64)
        columns[..., 0] = 0
        for row, context in enumerate(contexts):
            columns[row, shape[1] - len(context) :] = context
            known[row, shape[1] - len(context) :] = 1
        fused = torch.zeros_like(self.model.speakers[:1]).expand(len(contexts), -1)
        return self._forward_columns(columns, None, torch.from_numpy(known).to(fused.device), fused)

    def begin(self, state: ComaeState, plans: np.ndarray) -> ComaeState:
        """Begin replies after contexts: START, which carries the plans (rows, SLOT_COUNT)."""
        with torch.inference_mode():
            fused = self.model.fuse(torch.from_numpy(plans).to(self.model.device))
        columns = np.stack([self.inputs.reply([])] * len(plans))
        return self._forward_columns(columns, state.cache, _longer(state.known, 1), fused)

    def factor_probabilities(self, state: ComaeState, factor: str, plans: np.ndarray) -> np.ndarray:
        """How likely a factor's choices are after contexts, given the plans' earlier factors.

        Returns:
            (rows, slots, choices) float64.
        """
        with torch.inference_mode():
            scores = self.model.predict(factor, state.last, torch.from_numpy(plans).to(self.model.device))
            probabilities: np.ndarray = scores.double().softmax(-1).cpu().numpy()
        return probabilities

    def join(self, states: Sequence[Any]) -> ComaeState:
        """The rows of several states as one; they may have read different numbers of tokens."""
        joined = super().join(states)
        last, fused = (torch.cat([getattr(state, name) for state in states]) for name in ("last", "fused"))
        return ComaeState(joined.cache, joined.logits, joined.known, last, fused)

    def pick(self, state: Any, rows: Sequence[int]) -> ComaeState:  # noqa: ANN401
        """A state of these rows, repeated, reordered or left out; the given one stays as it is."""
        picked, indices = super().pick(state, rows), list(rows)
        return ComaeState(
            picked.cache, picked.logits, picked.known, state.last[indices], state.fused[indices]
        )

    def step(self, state: Any, tokens: Sequence[Sequence[int]]) -> ComaeState:  # noqa: ANN401
        """Read more of the replies, as many tokens in every row; the given state cannot be used again."""
        columns = np.stack([self.inputs.reply(row)[1:] for row in tokens])
        known = _longer(state.known, columns.shape[1])
        return self._forward_columns(columns, state.cache, known, state.fused)

    def _forward_columns(
        self,
        columns: np.ndarray,
        cache: Any,  # noqa: ANN401
        known: torch.Tensor,
        fused: torch.Tensor,
    ) -> ComaeState:
        """Read columns (rows, m, COLUMNS)."""
        with torch.inference_mode():
            told = torch.from_numpy(columns).to(self.model.device)
            # Padding counts for nothing: no token sees them, and positions start after them.
            positions = (known.cumsum(1) - 1).clamp(min=0)[:, -columns.shape[1] :]
            output = self.model.decoder(
                inputs_embeds=self.model.embed(told) + fused[:, None],
                attention_mask=known,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
            )
            last = output.last_hidden_state[:, -1]
            logits = (last @ self.model.output_weights().T).float()  # Eq. 10
            return ComaeState(output.past_key_values, logits, known, last, fused)


def _longer(known: torch.Tensor, count: int) -> torch.Tensor:
    """The mask with so many more tokens that are read."""
    return torch.nn.functional.pad(known, (0, count), value=1)
