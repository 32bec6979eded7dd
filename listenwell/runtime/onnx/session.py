"""The one place that imports onnxruntime: without telemetry, with as many threads as there are real cores."""

import os
from pathlib import Path
from typing import Any, Self

from listenwell.errors import WeightsError
from listenwell.runtime.onnx.cache import Ingredients, graph_folder
from listenwell.runtime.onnx.graph import GRAPH
from listenwell.runtime.text import Vocabulary

TELEMETRY = "ORT_DISABLE_TELEMETRY"
_CORES = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def onnxruntime() -> Any:  # noqa: ANN401
    """The library. It reports what it does to its makers unless it is told not to before it is imported."""
    os.environ[TELEMETRY] = "1"
    import onnxruntime as library

    return library


def open_session(folder: Path, threads: int | None = None) -> Any:  # noqa: ANN401
    """Load the graph in a folder, to work with as many threads as there are real cores by default."""
    library = onnxruntime()
    options = library.SessionOptions()
    options.intra_op_num_threads = threads or real_cores()
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a plan of memory for each length would never be used again
    options.log_severity_level = 3  # errors alone
    # Threads that wait for more work of one model would take the cores from the next one.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        return library.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library raises kinds of its own
        raise WeightsError(f"onnxruntime cannot load {folder}: {error}", "Remove that folder.") from error


def real_cores() -> int:
    """Cores that this process may use; two threads of one core count once. 0: leave it to the library."""
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return 0
    cores = set()
    for number in allowed:
        try:
            cores.add((_CORES / f"cpu{number}" / "topology" / "thread_siblings_list").read_text())
        except OSError:
            cores.add(str(number))
    return max(1, min(len(cores), _quota()))


def _quota() -> int:
    """How many cores' time a container may use."""
    try:
        time, period = _QUOTA.read_text().split()
        return max(1, round(int(time) / int(period)))
    except (OSError, ValueError):  # no container, or "max"
        return len(os.sched_getaffinity(0))


class OnnxModel:
    """A graph from `graph_folder`, run on the CPU; several threads may use it at once."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        self._session = open_session(folder, threads)
        self._notes: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        self.vocabulary = Vocabulary.from_folder(folder)

    @classmethod
    def load(
        cls, weights: Path, adapter: Path | None = None, precision: str = "int8", threads: int | None = None
    ) -> Self:
        """A model from its weights, a folder or a GGUF file; its graph is built where the cache has none."""
        return cls(graph_folder(Ingredients(weights, precision, adapter)), threads)
