"""A BERT encoder on onnxruntime: what annotators and rankers stand on, without torch."""

from pathlib import Path
from typing import TYPE_CHECKING

from listenwell.runtime.onnx.model import OnnxModel

if TYPE_CHECKING:
    import numpy as np


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
            segments: the number of the text that a place belongs to; padding has one of its own, such as 0.

        Returns:
            (rows, length, width) float32
        """
        import numpy as np

        given = {"tokens": tokens, "types": types, "positions": positions, "segments": segments}
        arrays = {name: np.ascontiguousarray(array, np.int64) for name, array in given.items()}
        found: np.ndarray = self._session.run(["states"], arrays)[0]
        return found
