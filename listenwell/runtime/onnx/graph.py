"""Writing an onnx graph: nodes one by one, weights straight to a file beside it that loading maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from listenwell.errors import WeightsError

GRAPH, WEIGHTS = "model.onnx", "weights.bin"
MICROSOFT = "com.microsoft"
"""Where onnxruntime's own operators live."""
PRECISIONS = ("int8", "fp32")
OPSET, IR = 21, 10
_PAGE = 1 << 16
"""Weights begin at multiples of this, the coarsest that any system maps files by."""
_SMALL = 1 << 12
"""Bytes; what is smaller stands in the graph itself."""
_EIGHT_BITS_TO_EIGHT_BITS = 4
"""The accuracy level at which a quantized product also rounds what comes in, in blocks, to 8 bits."""

BITS, BLOCK = 8, 32
_MOST = 2**BITS - 1
_ROWS = 4096
"""Worked on at once: a vocabulary's table would need three times its own memory."""


class Graph:
    """A graph in the making; with int8, linear layers are rounded in blocks of so many numbers."""

    def __init__(self, folder: Path, precision: str, block: int = BLOCK) -> None:
        self._folder, self.precision, self._block = folder, precision, block
        self._nodes: list[Any] = []
        self._tensors: dict[str, Any] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._file: IO[bytes] = (folder / WEIGHTS).open("wb")

    def __enter__(self) -> "Graph":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def input(self, name: str, kind: str, shape: Sequence[int | str]) -> str:
        """Declare what is given to the graph; a word in the shape is a size that may vary."""
        self._inputs.append(_value(name, kind, shape))
        return name

    def output(self, name: str, kind: str, shape: Sequence[int | str]) -> None:
        """Declare what the graph gives."""
        self._outputs.append(_value(name, kind, shape))

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str = "",
        **settings: float | str,
    ) -> str:
        """Add an operation; returns its first output's name."""
        from onnx import helper

        self._nodes.append(helper.make_node(operator, inputs, outputs, None, None, domain, None, **settings))
        return outputs[0]

    def constant(self, name: str, values: np.ndarray) -> str:
        """Keep an array under a name; the same name twice is the same array."""
        from onnx import TensorProto, helper, numpy_helper

        if name in self._tensors:
            return name
        values = np.ascontiguousarray(values)
        if values.nbytes < _SMALL:
            self._tensors[name] = numpy_helper.from_array(values, name)
            return name
        self._file.seek(-self._file.tell() % _PAGE, 1)
        tensor = TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(values.dtype),
            dims=values.shape,
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (("location", WEIGHTS), ("offset", self._file.tell()), ("length", values.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        self._file.write(values.data)
        self._tensors[name] = tensor
        return name

    def lookup(self, indices: str, name: str, table: np.ndarray) -> str:
        """Rows of a table, which is never in memory as a whole: only the pages that are asked for are read.

        The table is kept in half precision where the graph's is not full.
        """
        from onnx import TensorProto

        if self.precision == "fp32":
            return self.node("Gather", [self.constant(name, table), indices], [f"{name}.rows"])
        halves = self.constant(name, table.astype(np.float16))
        rows = self.node("Gather", [halves, indices], [f"{name}.halves"])
        return self.node("Cast", [rows], [f"{name}.rows"], to=TensorProto.FLOAT)

    def linear(
        self, x: str, name: str, weight: np.ndarray, bias: np.ndarray | None = None, out: str = ""
    ) -> str:
        """x Wᵀ + b in the graph's precision, with W (outputs, width)."""
        out = out or f"{name}.out"
        if self.precision == "fp32":
            transposed = self.constant(f"{name}.weight", weight.T)
            product = self.node("MatMul", [x, transposed], [out if bias is None else f"{out}.product"])
            if bias is not None:
                self.node("Add", [product, self.constant(f"{name}.bias", bias)], [out])
            return out
        codes, scales, zeros = quantized(weight, self._block)
        inputs = [
            x,
            self.constant(f"{name}.codes", codes),
            self.constant(f"{name}.scales", scales),
            self.constant(f"{name}.zeros", zeros),
        ]
        if bias is not None:
            inputs += ["", self.constant(f"{name}.bias", bias)]  # between them: an order of columns
        return self.node(
            "MatMulNBits",
            inputs,
            [out],
            MICROSOFT,
            K=weight.shape[1],
            N=weight.shape[0],
            bits=BITS,
            block_size=self._block,
            accuracy_level=_EIGHT_BITS_TO_EIGHT_BITS,
        )

    def dense(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """x Wᵀ + b in float32 whatever the graph's precision; the result is called `name`."""
        product = self.node("MatMul", [x, self.constant(f"{name}.weight", weight.T)], [f"{name}.product"])
        return self.node("Add", [product, self.constant(f"{name}.bias", bias)], [name])

    def save(self, name: str, notes: Mapping[str, str]) -> None:
        """Write the graph, with notes for whoever loads it."""
        from onnx import helper

        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=list(self._tensors.values())
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, ir_version=IR, opset_imports=opsets, producer_name="listenwell")
        helper.set_model_props(model, dict(notes))
        (self._folder / GRAPH).write_bytes(model.SerializeToString())


def _value(name: str, kind: str, shape: Sequence[int | str]) -> Any:  # noqa: ANN401
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)


def quantized(weight: np.ndarray, block: int = BLOCK) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix (outputs, width) in 8 bits as onnxruntime's MatMulNBits wants it: w ≈ scale (code − zero).

    Codes are the nearest ones. The search for better scales that onnxruntime calls k_quant takes far longer
    and comes no closer to the model in full precision; what helps is `smooth.py`.
    Returns codes (outputs, blocks, block) uint8, scales (outputs, blocks) float32, zeros the same uint8.
    """
    rows, blocks = len(weight), -(-weight.shape[1] // block)
    codes = np.empty((rows, blocks, block), np.uint8)
    scales, zeros = np.empty((rows, blocks), np.float32), np.empty((rows, blocks), np.uint8)
    for top in range(0, rows, _ROWS):
        part = slice(top, top + _ROWS)
        codes[part], scales[part], zeros[part] = _coded(weight[part], block)
    return codes, scales, zeros


def _coded(weight: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, width = weight.shape
    blocks = np.pad(weight, ((0, 0), (0, -width % block))).reshape(rows, -1, block)
    # Zero is always in the range, so that its code is a whole number from 0 to 255.
    low = np.minimum(blocks.min(axis=2), 0)
    scales = (np.maximum(blocks.max(axis=2), 0) - low) / np.float32(_MOST)
    scales[scales == 0] = 1
    zeros = np.round(-low / scales)
    blocks /= scales[:, :, None]
    blocks += zeros[:, :, None]
    return np.clip(np.round(blocks, out=blocks), 0, _MOST, out=blocks), scales, zeros


class ModelShape:
    """What a model's config.json says, as far as it moves a number."""

    @staticmethod
    def check_plain(kind: str, differs: Mapping[str, bool]) -> None:
        """Raise an error that names the settings our graph does not have."""
        if any(differs.values()):
            names = ", ".join(name for name, is_other in differs.items() if is_other)
            raise WeightsError(
                f"The model is no plain {kind}; what differs: {names}.",
                f"Run it with torch, or use a plain {kind}.",
            )

    def notes(self) -> dict[str, str]:
        """What is written into the graph's file."""
        return {name: str(value) for name, value in vars(self).items()}
