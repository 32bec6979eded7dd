"""A BERT encoder on onnxruntime: what annotators and rankers stand on, without torch."""

from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.runtime.onnx.model import OnnxModel

if TYPE_CHECKING:
    import numpy as np


PADDED = 0.25
"""Share of padding from where on texts stand in one row instead; below, attention gains more by rows."""


class OnnxEncoder(OnnxModel):
    """A BERT."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        super().__init__(folder, threads)
        self.width = int(self._notes["width"])
        self.positions = int(self._notes["positions"])
        """How many tokens a text may have."""

    def states(
        self,
        tokens: "np.ndarray",
        types: "np.ndarray",
        positions: "np.ndarray",
        segments: "np.ndarray",
    ) -> "np.ndarray":
        """The encoder's last layer; a place sees those of its own segment.

        Args:
            tokens: (rows, length) whole numbers, like all four.
            types: 1 for the second kind of words, such as the listener's.
            positions: the place inside the text.
            segments: the number of the text that a place belongs to; 0 in padding.

        Returns:
            (rows, length, width) float32; what stands in padding means nothing.
        """
        import numpy as np

        given = {"tokens": tokens, "types": types, "positions": positions, "segments": segments}
        arrays = {name: np.ascontiguousarray(array, np.int64) for name, array in given.items()}
        known = arrays["segments"] != 0
        if known.mean() > 1 - PADDED:
            return self._run(arrays)
        # All texts in one row, each a segment: nothing is worked out for padding.
        numbers = np.arange(len(known))[:, None] * (int(arrays["segments"].max()) + 1)
        arrays["segments"] = arrays["segments"] + numbers
        found = np.zeros((*known.shape, self.width), np.float32)
        found[known] = self._run({name: array[known][None] for name, array in arrays.items()})[0]
        return found

    def _run(self, arrays: "dict[str, np.ndarray]") -> "np.ndarray":
        found: np.ndarray = self._session.run(["states"], arrays)[0]
        return found
