"""Collect the parts of the C file: networks, encodings and flags, each written once."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import pairwise

from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import Encoding, Lidar
from blendctl.controllers.lookahead_network import Normalisation
from blendctl.export.c_text import array, comment, define, number, weights

AnyEncoding = Encoding | Normalisation
NARROW = 8  # outputs of a layer that is not worth vectors


@dataclass
class CBuilder:
    """Parts of a C file, and reasons why it cannot be written."""

    tables: list[str] = field(default_factory=list)
    late_tables: list[str] = field(default_factory=list)  # after the types of encodings and of the learner
    functions: list[str] = field(default_factory=list)  # networks
    flags: dict[str, int] = field(default_factory=dict)  # macros that select parts of the runtime
    controller_bytes: int = 0  # of stack, for a classical controller's places of obstacles
    problems: list[str] = field(default_factory=list)  # what cannot be exported, with the reason and the way out
    network_sizes: list[int] = field(default_factory=list)  # numbers of weights
    multiply_adds: dict[str, int] = field(default_factory=dict)  # in one decision, by the name of a network's function
    digests: dict[str, str] = field(default_factory=dict)  # SHA-256 of the weights, by the name of a network
    rings: int = 1  # most lidars of an encoding
    double_geometry: bool = False  # decisions need encodings in double precision
    widest: int = 0  # most units of a hidden layer
    scratch: list[tuple[str, str]] = field(default_factory=list)  # field of the scratch memory, and how it starts
    scratch_size: int = 0  # bytes of these fields
    _dense: list[tuple[str, str, Dense]] = field(default_factory=list)
    _networks: dict[str, str] = field(default_factory=dict)  # digest -> function
    _encodings: list[AnyEncoding] = field(default_factory=list)
    _sightings: dict[tuple[float, ...], int] = field(default_factory=dict)
    _room: list[int] = field(default_factory=list)  # inputs after an encoding's own

    def flag(self, *names: str) -> None:
        """Select parts of the runtime."""
        for name in names:
            self.flags[name] = 1

    def network(self, dense: Dense, label: str) -> str:
        """Add a network; return the name of its function (const float *inputs, float *outputs)."""
        digest = hashlib.sha256(dense.flat.tobytes() + dense.sizes.tobytes() + dense.activation.encode()).hexdigest()
        self.digests[label] = hashlib.sha256(dense.flat.tobytes()).hexdigest()
        sizes = dense.sizes.tolist()
        products = sum(n * m for n, m in pairwise(sizes))
        if digest in self._networks:
            self.multiply_adds[self._networks[digest]] += products
            return self._networks[digest]
        name = self._networks[digest] = f"network_{len(self._networks)}"
        self.flag("BLEND_RELU_LAYERS" if dense.activation == "relu" else "BLEND_TANH_LAYERS")
        self._dense.append((name, label, dense))
        self.network_sizes.append(dense.flat.size)
        self._function(name, dense, label)
        self.multiply_adds[name] = products
        return name

    def network_pair(self, name: str, *, shared: int) -> str:
        """Add a function that computes a network for two inputs with the same first `shared` entries; return its name.

        Its parameters are (const float *inputs, const float *other_inputs, float *outputs, float *other_outputs).
        """
        label, dense = next((label, dense) for known, label, dense in self._dense if known == name)
        self._function(name, dense, label, shared=shared - shared % 4)
        return f"{name}_pair"

    def _function(self, name: str, dense: Dense, label: str, *, shared: int | None = None) -> None:
        """Write the function of a network, for two inputs if `shared` is a number."""
        sizes, relu, lines, at = dense.sizes.tolist(), dense.activation == "relu", [], 0
        units = "relu_units" if relu else "tanh_units"
        chains = [("x", "y", "ab")] if shared is None else [("x", "y", "ab"), ("u", "v", "cd")]
        sources = [source for source, _, _ in chains]
        for index, (n, m) in enumerate(pairwise(sizes)):
            last = index == len(sizes) - 2
            targets = [out if last else buffers[index % 2] for _, out, buffers in chains]
            kind = "sparse_layer" if relu else "narrow_layer" if m <= NARROW else "layer"
            if not relu:
                self.flag("BLEND_NARROW_LAYERS" if m <= NARROW else "BLEND_WIDE_LAYERS")
            values = f"{name}_weights.values + {at}, {n}, {m}"
            if kind == "layer" and shared is not None:
                self.flag("BLEND_PAIRS")
                common = shared if index == 0 else 0
                lines.append(f"    pair_layer({values}, {common}, {', '.join([*sources, *targets])});\n")
            else:
                lines += [f"    {kind}({values}, {x}, {y});\n" for x, y in zip(sources, targets, strict=True)]
            lines += [f"    {units}({target}, {m});\n" for target in targets if not last]
            at += n * m + m
            sources = targets
        hidden = sizes[1:-1]
        self.widest = max([self.widest, *(size * len(chains) for size in hidden)])
        sizes_of = [max(hidden[start::2], default=0) for start in (0, 1)]
        scratch = "".join(
            f"    ALIGNED float {letter}[{size}];\n"
            for _, _, buffers in chains
            for letter, size in zip(buffers, sizes_of, strict=True)
            if size
        )
        inputs = ", ".join(f"const float *{source}" for source, _, _ in chains)
        outputs = ", ".join(f"float *{out}" for _, out, _ in chains)
        full = name if shared is None else f"{name}_pair"
        self.functions.append(
            f"/* {comment(label)} */\nstatic void {full}({inputs}, {outputs})\n{{\n{scratch}{''.join(lines)}}}\n"
        )

    def network_tables(self) -> list[str]:
        """Return the weights of all networks."""
        return [
            f"/* {comment(label)}: {'-'.join(map(str, dense.sizes))} */\n{weights(f'{name}_weights', dense.flat)}"
            for name, label, dense in self._dense
        ]

    def encoding(self, encoding: AnyEncoding, *, room: int = 0) -> str:
        """Add an encoding with `room` for further inputs; return the name of the function that computes it once."""
        index = next((i for i, known in self._numbered() if _same(known, encoding)), len(self._encodings))
        if index == len(self._encodings):
            self._encodings.append(encoding)
            self._room.append(0)
        self._room[index] = max(self._room[index], room)
        return f"encoded_{index}"

    def encoding_table(self, name: str, encoding: Encoding) -> str:
        """Return the constants of an encoding."""
        robot, gains, rings, _, pairs, ahead, near, velocity, far = encoding.plan
        self.rings = max(self.rings, len(rings))
        self.flag("HAS_ENCODING")
        lidars = ", ".join(
            f"{{{r.start}, {r.bins}, {r.objects}, {number(r.radius)}, {self._sighting(r, far, len(ahead) > 0)}}}"
            for r in encoding.lidars
        )
        return (
            array(f"{name}_robot", robot, kind="int")
            + array(f"{name}_gains", gains)
            + f"static const struct lidar {name}_lidars[{max(len(rings), 1)}] = {{{lidars or '{0, 0, 0, 0.0, 0}'}}};\n"
            + array(f"{name}_pairs", pairs.ravel(), kind="int")
            + array(f"{name}_ahead", ahead.ravel())
            + f"static const struct encoding {name} = {{{len(robot)}, {name}_robot, {name}_gains, {len(rings)}, "
            f"{name}_lidars, {len(pairs)}, {name}_pairs, {len(ahead)}, {name}_ahead, {int(near)}, {velocity}, "
            f"{number(far)}}};\n"
        )

    def _sighting(self, lidar: Lidar, far: float, edges: bool) -> int:
        """Return the number of a lidar; encodings that decode it in the same way share it."""
        key = lidar.start, lidar.bins, lidar.objects, float(far), edges
        return self._sightings.setdefault(key, len(self._sightings))

    @property
    def sightings(self) -> int:
        """Number of different lidars."""
        return max(len(self._sightings), 1)

    def work(self) -> str:
        """Return the scratch memory of one control step, and the functions that encode an observation once."""
        encoders = [self._encoder(i, encoding) for i, encoding in self._numbered()]
        fields = [f"    int done_{i};\n    float encoded_{i}[{e.size + self._room[i]}];\n" for i, e in self._numbered()]
        clear = [f"    w->done_{i} = 0;\n" for i, _ in self._numbered()]
        if self.flags.get("BOOTSTRAPS"):
            fields.append("    int foresaw;\n    struct foresight foresight;\n")
            clear.append("    w->foresaw = 0;\n")
        fields += [line for line, _ in self.scratch]
        clear += [line for _, line in self.scratch]
        if self.flags.get("HAS_ENCODING"):
            fields.append("    struct sighting sightings[SIGHTINGS];\n")
            clear.append("    for (i = 0; i < SIGHTINGS; i++)\n        w->sightings[i].known = 0;\n")
        parts = [
            "/* Scratch memory of one control step. */\nstruct work {\n"
            "    const int *proposed; /* arms that have proposed an action */\n" + "".join(fields) + "};\n",
            "static void start_work(struct work *w)\n{\n    int i;\n    (void)i;\n    w->proposed = NULL;\n"
            + "".join(clear)
            + "}\n",
        ]
        return "\n".join(parts + encoders)

    def _numbered(self) -> list[tuple[int, AnyEncoding]]:
        return list(enumerate(self._encodings))

    def scratch_bytes(self) -> int:
        """Return the size of the scratch memory at most."""
        encoded = sum(8 + 4 * (encoding.size + self._room[i]) for i, encoding in self._numbered())
        return encoded + self.scratch_size + 184 * self.sightings + 256

    def _encoder(self, index: int, encoding: AnyEncoding) -> str:
        if isinstance(encoding, Normalisation):
            mean = array(f"mean_{index}", encoding.mean, kind="float")
            tables = mean + array(f"deviation_{index}", encoding.scale, kind="float")
            body = (
                f"        int i;\n        for (i = 0; i < {encoding.size}; i++) {{\n"
                f"            const float x = (narrow(observation[i]) - mean_{index}[i]) / deviation_{index}[i];\n"
                f"            w->encoded_{index}[i] = x < -10.0f ? -10.0f : x > 10.0f ? 10.0f : x;\n        }}\n"
            )
        else:
            tables = self.encoding_table(f"encoding_{index}", encoding)
            body = f"        encode(&encoding_{index}, observation, w->sightings, w->encoded_{index});\n"
        return (
            f"{tables}\nstatic float *encoded_{index}(struct work *w, const double *observation)\n{{\n"
            f"    if (!w->done_{index}) {{\n{body}        w->done_{index} = 1;\n    }}\n"
            f"    return w->encoded_{index};\n}}\n"
        )

    def flag_macros(self, names: list[str]) -> str:
        """Return the macros of all flags, 0 where a part is not needed."""
        return define(**{name: self.flags.get(name, 0) for name in names})


def _same(one: AnyEncoding, other: AnyEncoding) -> bool:
    return one is other or (isinstance(one, Encoding) and one == other)
