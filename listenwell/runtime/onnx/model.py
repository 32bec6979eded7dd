"""What every model on onnxruntime has: a graph from the cache, its notes, its vocabulary."""

from pathlib import Path
from typing import Self

from listenwell.runtime.onnx.cache import Ingredients, graph_folder
from listenwell.runtime.onnx.session import open_session
from listenwell.runtime.text import Vocabulary


class OnnxModel:
    """A graph, run on the CPU; several threads may use it at once.

    Args:
        folder: what `graph_folder` gave.
        threads: how many to work with; as many as there are real cores, if not given.
    """

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
        """A model from its weights; its graph is built where the cache has none.

        Args:
            weights: a folder in Hugging Face's layout, or a GGUF file.
            adapter: a folder with a LoRA adapter, and with new tokens and their tokenizer.json, if any.
            precision: "int8", or "fp32" for the same numbers as torch.
            threads: how many to work with.
        """
        return cls(graph_folder(Ingredients(weights, precision, adapter)), threads)
