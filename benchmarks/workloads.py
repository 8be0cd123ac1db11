"""What is measured: models, sizes, and the targets of the design, one row for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .measure import Line
from .systems import Array, Entrant, Minigrad, Model, Silent, System

Shapes = tuple[tuple[int, ...], ...]
CLOSE = 1e-9  # gradients of two systems, relative to the largest of the leaf
LENGTH = 200  # of a chain of scalars, two ops each; micrograd recurses, so not much longer


# --- models ---------------------------------------------------------------------------------------


def mlp(ops: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, t: Any) -> Any:
    """Two layers and a squared error: 8 ops."""
    d = ops.tanh(x @ w1 + b1) @ w2 + b2 - t
    return ops.sum(d * d)


def weighted_gelu(ops: Any, x: Any, w: Any, b: Any, v: Any) -> Any:
    """What a compiler would fuse into one loop."""
    return ops.sum(ops.gelu(x * w + b) * v)


def chain(ops: Any, y: Any, a: Any, b: Any) -> Any:
    """Scalars one after the other; every node has two inputs that need a gradient."""
    for _ in range(LENGTH):
        y = y * a + b
    return y


def chain_of_numbers(ops: Any, y: Any) -> Any:
    """Scalars one after the other, and plain numbers as second operands."""
    for _ in range(LENGTH):
        y = y * 0.97 + 0.1
    return y


def layer(ops: Any, x: Any, w: Any) -> Any:
    """192 elements to check."""
    return ops.sum(ops.tanh(x @ w))


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """One row: a model in its size, and a target as a ratio to `peer`.

    key: how `--profile` calls it. timed: which method of a system makes the run.
    """

    key: str
    name: str
    model: Model
    leaves: Shapes
    constants: Shapes
    target: float
    peer: str = "PyTorch"
    timed: str = "step"

    def arrays(self) -> tuple[list[Array], list[Array]]:
        """Leaves and constants, the same for every system; scalars are a little below 1."""
        rng = np.random.default_rng(0)

        def drawn(shape: tuple[int, ...]) -> Array:
            return rng.normal(0, 0.3, shape) if shape else np.asarray(rng.uniform(0.9, 1))

        return list(map(drawn, self.leaves)), list(map(drawn, self.constants))

    def entrants(self, systems: Iterable[System]) -> dict[str, Entrant]:
        """Those that can run it, by name. Raises AssertionError if their gradients differ."""
        arrays = self.arrays()
        found: dict[str, Entrant] = {}
        for system in systems:
            entrant = getattr(system, self.timed)(self.model, *arrays)
            if entrant is not None:
                found[system.name] = entrant
        refuse_difference(self.name, found)
        return found


def refuse_difference(name: str, found: Mapping[str, Entrant]) -> None:
    """Raise AssertionError unless all come to the gradients that the first one comes to."""
    (ours, first), *others = [(who, e.gradients()) for who, e in found.items()]
    for peer, theirs in others:
        for n, (a, b) in enumerate(zip(first, theirs, strict=True)):
            a, b = np.asarray(a), np.asarray(b)
            assert a.shape == b.shape, f"{name}: leaf {n} of {ours} and {peer} differ in shape"
            apart = np.max(np.abs(a - b)) / np.max(np.abs(b))
            assert apart <= CLOSE, (
                f"{name}: the gradients of leaf {n} by {ours} and {peer} are {apart:.1e} apart"
            )


def _mlp(key: str, name: str, batch: int, sizes: tuple[int, int, int], target: float) -> Workload:
    into, hidden, out = sizes
    leaves = ((into, hidden), (hidden,), (hidden, out), (out,))
    return Workload(key, name, mlp, leaves, ((batch, into), (batch, out)), target)


CELLS = (4096, 256)
WORKLOADS = (
    _mlp("small", "small MLP, 8 ops", 4, (3, 5, 2), 0.65),
    _mlp("mlp256", "MLP 256×128×256×64", 256, (128, 256, 64), 1.0),
    _mlp("mlp4096", "MLP 4096×512×512×64", 4096, (512, 512, 64), 1.1),
    Workload("gelu", "sum(gelu(x*w+b)*v), 4096×256", weighted_gelu, (CELLS,) * 4, (), 0.6),
    Workload(
        "gelu_rows", "the same, w b v of 256", weighted_gelu, (CELLS, *((256,),) * 3), (), 0.6
    ),
    Workload("chain", "scalar chain, 400 ops", chain, ((),) * 3, (), 1.2, "micrograd"),
    Workload("numbers", "scalar chain with numbers", chain_of_numbers, ((),), (), 1.2, "micrograd"),
    Workload(
        "gradcheck",
        "gradcheck of 192 elements",
        layer,
        ((8, 16), (16, 4)),
        (),
        0.5,
        timed="gradcheck",
    ),
    Workload(
        "events",
        "all events, small MLP",
        mlp,
        ((3, 5), (5,), (5, 2), (2,)),
        ((4, 3), (4, 2)),
        6,
        Silent.name,
        timed="backward",
    ),
)
IMPORT = ("import minigrad", "import numpy", 1.5)
ELSEWHERE = (
    Line("first lesson on screen", "an empty app, warm", 2, elsewhere="measured elsewhere"),
    Line("step in the browser, 30 nodes", "16 ms", 0, elsewhere="measured elsewhere"),
    Line("step in the browser, 300 nodes", "50 ms", 0, elsewhere="measured elsewhere"),
)


def ours(key: str) -> Entrant:
    """The run of one workload in minigrad alone."""
    workload = next(w for w in WORKLOADS if w.key == key)
    return workload.entrants([Minigrad()])[Minigrad.name]
