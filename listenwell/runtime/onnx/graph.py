"""Writing an onnx graph: nodes one by one, weights straight to a file beside it that loading maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from listenwell.runtime.onnx.quantize import BITS, BLOCK, quantized

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
