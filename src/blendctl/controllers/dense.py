"""Dense networks without torch: one row in a compiled kernel, a batch as matrix products."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from blendctl.compiled import compiled
from blendctl.errors import InputError

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Dense:
    """A network of affine layers with tanh or max(0, x) between them.

    Weights are stored as (inputs, outputs): a row holds the weights of one input.
    """

    weights: tuple[Array, ...]  # (inputs, outputs) each
    biases: tuple[Array, ...]  # (outputs,) each
    activation: Literal["tanh", "relu"] = "tanh"
    flat: Array = field(init=False, repr=False)  # weights and biases of all layers, concatenated
    sizes: NDArray[np.int64] = field(init=False)  # (layers + 1,)

    def __post_init__(self) -> None:
        if not self.weights or len(self.weights) != len(self.biases):
            raise InputError(f"a network has {len(self.weights)} weights and {len(self.biases)} biases")
        size = self.weights[0].shape[0]
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if weight.ndim != 2 or 0 in weight.shape or weight.shape[0] != size or bias.shape != weight.shape[1:]:
                raise InputError(
                    f"layer {layer} of a network has weights {weight.shape} and biases {bias.shape}; "
                    f"expected ({size}, outputs) and (outputs,)"
                )
            size = weight.shape[1]
        # The kernel takes one flat vector, so that one signature fits every network.
        parts = [part.ravel() for pair in zip(self.weights, self.biases, strict=True) for part in pair]
        object.__setattr__(self, "flat", np.concatenate(parts).astype(np.float32))
        sizes = [self.weights[0].shape[0], *(w.shape[1] for w in self.weights)]
        object.__setattr__(self, "sizes", np.array(sizes, np.int64))

    def __repr__(self) -> str:
        return f"Dense({'-'.join(map(str, self.sizes))}, {self.activation})"

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return int(self.weights[0].shape[0])

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return int(self.weights[-1].shape[1])

    def row(self, inputs: Array) -> Array:
        """Return the outputs (outputs,) for one row of inputs (inputs,)."""
        run = run_row if self.activation == "tanh" else run_relu_row
        return run(inputs, self.flat, self.sizes)

    def batch(self, inputs: Array) -> Array:
        """Return the outputs (n, outputs) for a batch of inputs (n, inputs)."""
        hidden = inputs
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = hidden @ weight
            hidden += bias
            if layer + 1 < len(self.weights):
                if self.activation == "tanh":
                    np.tanh(hidden, out=hidden)
                else:
                    np.maximum(hidden, 0.0, out=hidden)
        return hidden


@compiled
def run_row(inputs: Array, flat: Array, sizes: NDArray[np.int64]) -> Array:
    """Run one row through the tanh network whose layers are concatenated in `flat`."""
    x = inputs
    at = 0
    layers = len(sizes) - 1
    for layer in range(layers):
        n, m = sizes[layer], sizes[layer + 1]
        y = flat[at + n * m : at + n * m + m].copy()
        # Four inputs per pass: the sums stay in cache, and the inner loop vectorises.
        whole = n - n % 4
        for i in range(0, whole, 4):
            a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
            w = flat[at + i * m : at + (i + 4) * m]
            for j in range(m):
                y[j] += (a * w[j] + b * w[m + j]) + (c * w[2 * m + j] + d * w[3 * m + j])
        for i in range(whole, n):
            a = x[i]
            w = flat[at + i * m : at + (i + 1) * m]
            for j in range(m):
                y[j] += a * w[j]
        if layer + 1 < layers:
            for j in range(m):
                y[j] = fast_tanh(y[j])
        at += n * m + m
        x = y
    return x


@compiled
def run_relu_row(inputs: Array, flat: Array, sizes: NDArray[np.int64]) -> Array:
    """Run one row through the network with max(0, x) whose layers are concatenated in `flat`."""
    x = inputs
    at = 0
    layers = len(sizes) - 1
    for layer in range(layers):
        n, m = sizes[layer], sizes[layer + 1]
        y = flat[at + n * m : at + n * m + m].copy()
        for i in range(n):
            a = x[i]
            if a != 0.0:  # false for half of the hidden units
                w = flat[at + i * m : at + (i + 1) * m]
                for j in range(m):
                    y[j] += a * w[j]
        if layer + 1 < layers:
            for j in range(m):
                y[j] = max(y[j], np.float32(0.0))
        at += n * m + m
        x = y
    return x


@compiled
def fast_tanh(x: np.float32) -> np.float32:
    """Compute tanh with an error below 5e-7, in arithmetic that vectorises.

    Evaluate Lambert's continued fraction at a quarter of the argument, then apply tanh 2u = 2 t / (1 + t^2) twice.
    Beyond 9, tanh is 1 in single precision.
    """
    u = min(max(x, np.float32(-9.0)), np.float32(9.0)) * np.float32(0.25)
    z = u * u
    top = u * (np.float32(135135.0) + z * (np.float32(17325.0) + z * (np.float32(378.0) + z)))
    bottom = np.float32(135135.0) + z * (np.float32(62370.0) + z * (np.float32(3150.0) + z * np.float32(28.0)))
    t = top / bottom
    t = np.float32(2.0) * t / (np.float32(1.0) + t * t)
    return np.float32(2.0) * t / (np.float32(1.0) + t * t)
