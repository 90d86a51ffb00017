"""Build an ONNX graph: constants, operators, and networks with their encodings."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import ROBOT_CLIP, Encoding
from blendctl.controllers.lookahead_network import NORMALISED_CLIP, Normalisation
from blendctl.errors import MissingExtraError

OPSET, IR_VERSION = 17, 8


class GraphBuilder:
    """Nodes and constants of a graph. Values are referred to by name."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError:
            raise MissingExtraError("onnx", extra="export") from None
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: dict[bytes, str] = {}
        self.initializers: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.digests: dict[str, str] = {}
        self._encoded: list[tuple[Encoding | Normalisation, str]] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def const(self, values: ArrayLike, dtype: Any = np.float64) -> str:
        """Return the name of a constant; equal constants are stored once."""
        array = np.ascontiguousarray(np.asarray(values, dtype)).reshape(np.shape(values))
        key = hashlib.sha256(array.tobytes() + str((array.dtype, array.shape)).encode()).digest()
        if key not in self.constants:
            self.constants[key] = f"c{len(self.constants)}"
            self.initializers.append(self.onnx.numpy_helper.from_array(array, self.constants[key]))
        return self.constants[key]

    def input(self, name: str, shape: tuple[int, ...], default: NDArray[np.float64] | None = None) -> str:
        """Add an input of doubles; with a default it may be left out."""
        kind = self.onnx.TensorProto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))
        if default is not None:
            self.initializers.append(
                self.onnx.numpy_helper.from_array(np.ascontiguousarray(default).reshape(shape), name)
            )
        return name

    def output(self, name: str, value: str, shape: tuple[int, ...], *, integer: bool = False) -> None:
        """Add an output."""
        kind = self.onnx.TensorProto.INT64 if integer else self.onnx.TensorProto.DOUBLE
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def double(self, value: str) -> str:
        """Convert to double."""
        return self.op("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def single(self, value: str) -> str:
        """Convert to float."""
        return self.op("Cast", value, to=self.onnx.TensorProto.FLOAT)

    def clip(self, value: str, low: ArrayLike, high: ArrayLike) -> str:
        """Limit a double, by numbers or arrays."""
        return self.op("Min", self.op("Max", value, self.const(low)), self.const(high))

    def gather(self, value: str, indices: ArrayLike) -> str:
        """Return entries of a vector."""
        return self.op("Gather", value, self.const(indices, np.int64), axis=0)

    def concat(self, *parts: str) -> str:
        """Join vectors."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def network(self, dense: Dense, inputs: str, label: str) -> str:
        """Run a network on a vector of floats; return a vector of floats."""
        self.digests[label] = hashlib.sha256(dense.flat.tobytes()).hexdigest()
        value = inputs
        for layer, (weight, bias) in enumerate(zip(dense.weights, dense.biases, strict=True)):
            product = self.op("MatMul", value, self.const(weight, np.float32))
            value = self.op("Add", product, self.const(bias, np.float32))
            if layer + 1 < len(dense.weights):
                value = self.op("Tanh" if dense.activation == "tanh" else "Relu", value)
        return value

    def encode(self, encoding: Encoding | Normalisation, observation: str) -> str:
        """Encode the observation; return a vector of floats."""
        for known, value in self._encoded:
            if known is encoding or (isinstance(known, Encoding) and known == encoding):
                return value
        if isinstance(encoding, Normalisation):
            raw = self.op("Sub", self.single(observation), self.const(encoding.mean, np.float32))
            scaled = self.double(self.op("Div", raw, self.const(encoding.scale, np.float32)))
            value = self.single(self.clip(scaled, -NORMALISED_CLIP, NORMALISED_CLIP))
        else:
            value = self.single(self.concat(*_Encoder(self, encoding, observation).parts()))
        self._encoded.append((encoding, value))
        return value

    def model(self, name: str, about: dict[str, str]) -> bytes:
        """Return the checked model as bytes."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.initializers)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="blendctl"
        )
        helper.set_model_props(model, about)
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())


class _Encoder:
    """The entries of an `Encoding`, as vectors of doubles."""

    def __init__(self, graph: GraphBuilder, encoding: Encoding, observation: str) -> None:
        self.graph, self.encoding, self.observation = graph, encoding, observation
        self.nearest: dict[int, tuple[str, str]] = {}

    def parts(self) -> list[str]:
        g, encoding = self.graph, self.encoding
        robot, gains = encoding.plan[0], encoding.plan[1]
        parts = []
        if len(robot):
            scaled = g.op("Mul", g.gather(self.observation, robot), g.const(gains))
            parts.append(g.clip(scaled, -ROBOT_CLIP, ROBOT_CLIP))
        for index, lidar in enumerate(encoding.lidars):
            bins = g.gather(self.observation, np.arange(lidar.start, lidar.start + lidar.bins))
            parts.append(bins)
            if encoding.near:
                magnified = g.op("Mul", g.op("Sub", bins, g.const(0.85)), g.const(10.0))
                parts.append(g.clip(magnified, 0.0, 2.0))
            first: str | None = None
            for which in range(lidar.objects):
                peak, entries = self._object(index, bins, first)
                parts += entries
                first = peak if which == 0 else first
        for a, b in encoding.pairs:
            parts += self._pair(self.nearest[a], self.nearest[b])
        return parts

    def _object(self, index: int, bins: str, first: str | None) -> tuple[str, list[str]]:
        g, lidar = self.graph, self.encoding.lidars[index]
        far = g.const([self.encoding.max_distance])
        searched = bins
        if first is not None:
            apart = g.op("Abs", g.op("Sub", g.const(np.arange(lidar.bins), np.int64), first))
            apart = g.op("Min", apart, g.op("Sub", g.const([lidar.bins], np.int64), apart))
            near = g.op("LessOrEqual", apart, g.const([1], np.int64))
            searched = g.op("Where", near, g.const([-1.0]), bins)
        peak = g.op("ArgMax", searched, axis=0, keepdims=1)  # (1,)
        reading = g.op("Gather", searched, peak, axis=0)
        seen = g.op("Greater", reading, g.const([1e-9]))
        safe = g.op("Where", seen, reading, g.const([1.0]))
        count = g.const([lidar.bins], np.int64)
        before, after = (
            g.op(
                "Div", g.op("Gather", bins, g.op("Mod", g.op("Add", peak, g.const([s], np.int64)), count), axis=0), safe
            )
            for s in (lidar.bins - 1, 1)
        )
        low = g.clip(g.op("Sub", g.const([1.0]), before), 0.0, 1.0)
        high = g.op("Min", g.op("Max", after, low), g.const([1.0]))
        low, high = g.op("Where", seen, low, g.const([0.0])), g.op("Where", seen, high, g.const([1.0]))
        distance = g.op("Where", seen, g.op("Mul", far, g.op("Sub", g.const([1.0]), reading)), far)
        place, width = g.double(peak), g.const([2.0 * np.pi / lidar.bins])
        middle = g.op("Mul", g.op("Add", low, high), g.const([0.5]))
        angle = g.op("Mul", g.op("Add", place, middle), width)
        cosine, sine = (g.op("Where", seen, g.op(kind, angle), g.const([0.0])) for kind in ("Cos", "Sin"))
        x, y = g.op("Mul", distance, cosine), g.op("Mul", distance, sine)
        self.nearest.setdefault(index, (x, y))
        entries = [x, y, distance, cosine, sine, g.op("Sub", high, low)]
        for bound in (low, high) if self.encoding.ahead else ():
            edge = g.op("Mul", g.op("Add", place, bound), width)
            at = [g.op("Mul", distance, g.op(kind, edge)) for kind in ("Cos", "Sin")]
            for margin in self.encoding.ahead:
                left = self._length(*(self._ahead(one, k, margin.time) for k, one in enumerate(at)))
                value = g.op("Div", g.op("Sub", g.const([lidar.radius]), left), g.const([margin.width]))
                entries.append(g.clip(g.op("Where", seen, value, g.const([-1.0])), -1.0, 1.0))
        return peak, entries

    def _ahead(self, place: str, axis: int, time: float) -> str:
        """Return a coordinate relative to where the robot will be."""
        g, velocity = self.graph, self.encoding.velocity
        if velocity < 0:
            return place
        return g.op("Sub", place, g.op("Mul", g.gather(self.observation, [velocity + axis]), g.const([time])))

    def _length(self, x: str, y: str) -> str:
        g = self.graph
        return g.op("Sqrt", g.op("Add", g.op("Mul", x, x), g.op("Mul", y, y)))

    def _pair(self, a: tuple[str, str], b: tuple[str, str]) -> list[str]:
        g = self.graph
        tiny = g.const([1e-9])
        x, y = g.op("Sub", b[0], a[0]), g.op("Sub", b[1], a[1])
        gap, sight = g.op("Add", self._length(x, y), tiny), g.op("Add", self._length(*a), tiny)
        both = g.op("Mul", gap, sight)
        along = g.op("Add", g.op("Mul", x, a[0]), g.op("Mul", y, a[1]))
        across = g.op("Sub", g.op("Mul", x, a[1]), g.op("Mul", y, a[0]))
        entries = [x, y, gap, g.op("Div", x, gap), g.op("Div", y, gap)]
        return [*entries, g.op("Div", along, both), g.op("Div", across, both)]
