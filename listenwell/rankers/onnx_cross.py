"""The cross-encoder without torch: the body on onnxruntime, the head in numpy; the same scores as `cross`."""

from collections.abc import Callable, Sequence

import numpy as np

from listenwell.annotators.inference import CPU_TOKENS, like_lengths
from listenwell.errors import CheckpointError
from listenwell.rankers.config import RankerConfig
from listenwell.rankers.inputs import Text
from listenwell.rankers.onnx_backbones import Backbone
from listenwell.runtime.onnx.checkpoint_encoder import Arrays


class OnnxCrossEncoder:
    """`cross.CrossEncoder`: persona, context and reply read as one text; several threads may use it at once.

    Args:
        config: what it is made of.
        body: makes states.
        weights: the head's, by the names of a checkpoint.
    """

    gives_vectors = False
    reads_pairs = True

    def __init__(self, config: RankerConfig, body: Backbone, weights: Arrays) -> None:
        self.config, self.body = config, body
        self.vector_width = body.width
        self._weight, self._bias = weights["head.weight"][0], weights["head.bias"]

    @classmethod
    def shapes(cls, config: RankerConfig, width: int) -> dict[str, tuple[int, ...]]:
        """The weights that it has beside its body's."""
        return {"head.weight": (1, width), "head.bias": (1,)}

    def score_texts(
        self, contexts: Sequence[Text], personas: Sequence[Text], replies: Sequence[Text]
    ) -> np.ndarray:
        """Every reply for every context: (contexts, replies) float32."""
        before = [joined(persona, context) for persona, context in zip(personas, contexts, strict=True)]
        pairs = [joined(context, reply) for context in before for reply in replies]
        found = np.zeros(len(pairs), np.float32)
        for batch in like_lengths([max(1, len(pair)) for pair in pairs], CPU_TOKENS):
            states = self.body([pairs[number] for number in batch])
            for number, values in zip(batch, states, strict=True):
                words = len(pairs[number])
                pooled = values[:words].mean(axis=0) if words else np.zeros(self.body.width, np.float32)
                found[number] = pooled @ self._weight + self._bias[0]
        return found.reshape(len(contexts), len(replies))

    def reply_vectors(
        self, replies: Sequence[Text], advance: Callable[[int], None] | None = None
    ) -> np.ndarray:
        """None: a reply means nothing before its context is known."""
        raise _no_vectors()

    def context_vectors(self, contexts: Sequence[Text], personas: Sequence[Text]) -> np.ndarray:
        """None either."""
        raise _no_vectors()


def joined(first: Text, second: Text) -> Text:
    """One text of two: the second's parts are numbered on from the first's."""
    begin = int(first.parts.max(initial=0))
    return Text(
        np.concatenate((first.tokens, second.tokens)),
        np.concatenate((first.types, second.types)),
        np.concatenate((first.parts, second.parts + begin)),
    )


def _no_vectors() -> CheckpointError:
    return CheckpointError(
        "A cross-encoder gives no vectors for large pools.", "Use a bi-encoder, or CoBERT with vectors."
    )
