"""What every model on onnxruntime has: a graph from the cache, its notes, its vocabulary."""

from pathlib import Path
from typing import Self

from listenwell.runtime.onnx.cache import Ingredients, graph_folder
from listenwell.runtime.onnx.session import open_session
from listenwell.runtime.text import Vocabulary


class OnnxModel:
    """A graph from `graph_folder`, run on the CPU; several threads may use it at once."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        self._session = open_session(folder, threads)
        self._notes: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        self.vocabulary = Vocabulary.from_folder(folder)

    @classmethod
    def load(
        cls,
        weights: Path,
        adapter: Path | None = None,
        precision: str = "int8",
        threads: int | None = None,
    ) -> Self:
        """A model from its weights, a folder or a GGUF file; its graph is built where the cache has none."""
        return cls(graph_folder(Ingredients(weights, precision, adapter)), threads)
