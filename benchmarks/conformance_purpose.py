"""Where minigrad and PyTorch differ on purpose: what both say, and why ours is so.

A case is one call on one array x, as text for both; `benchmarks.conformance` runs and prints it,
and fails if the two no longer differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import minigrad as mg

Answer = tuple[str, str]  # result and gradient in words; a refusal has no result


@dataclass(frozen=True)
class OnPurpose:
    """One difference: `mine` and `peer` call x; g is every cell of the upstream gradient."""

    op: str
    x: Any
    mine: str
    peer: str
    why: str
    g: float = 1.0

    @cached_property
    def ours(self) -> Answer:
        x = mg.tensor(np.array(self.x, float), requires_grad=True)
        try:
            y = eval(self.mine, {"mg": mg, "np": np, "x": x})
            (gradient,) = mg.grad(y, [x], np.full(y.shape, self.g))
        except mg.MinigradError as refusal:
            return "", f"refused, {type(refusal).__name__}"
        return told(y.numpy()), told(gradient)

    @cached_property
    def theirs(self) -> Answer:
        x = torch.tensor(self.x, dtype=torch.float64, requires_grad=True)
        try:
            y = eval(self.peer, {"torch": torch, "F": F, "x": x})
            (gradient,) = torch.autograd.grad(y, x, torch.full_like(y, self.g))
        except (RuntimeError, IndexError, ValueError) as refusal:
            return "", f"refused, {type(refusal).__name__}"
        return told(y.detach().numpy()), told(gradient.numpy())

    @property
    def differs(self) -> bool:
        return self.ours != self.theirs

    def __str__(self) -> str:
        """Three lines; the result is told too where it differs."""
        wide = max(len(self.mine), len(self.peer)) + 2
        sides = []
        for call, (y, gradient) in ((self.mine, self.ours), (self.peer, self.theirs)):
            words = gradient if not y else f"x̄ = {gradient}"
            if y and self.ours[0] != self.theirs[0]:
                words = f"y = {y}, {words}"
            sides.append(f"    {call:<{wide}}{words}")
        g = "" if self.g == 1 else f", ȳ = {self.g}"
        return "\n".join([f"{self.op}, x = {self.x}{g}: {self.why}", *sides])


def told(array: Any) -> str:
    flat = np.array2string(np.asarray(array), separator=", ", precision=6, max_line_width=10**6)
    text = " ".join(flat.split())
    return f"{text} {np.shape(array)}" if np.ndim(array) > 1 else text


INF = np.inf
INDEX = "torch.tensor([-1])"
CUBE = [[[1.0, 2.0], [3.0, 4.0]]]
NUMBER = "a plain number counts as an operand, so a tie with it is split (§7)"
TIES = "ties share evenly, total 1 (§7); amax agrees with us"
DEAD = "what selects passes exactly 0 to a dead cell, whatever arrives (§3)"
ZERO = "the infinity that the maths gives inside the domain, whatever the sign of 0 (§7)"
OUTSIDE = "where the value is NaN the slope is NaN, and flagged (§7)"
FAR = "no overflow and no NaN on the way (the op's card)"
COUNTS = "negative indices count from the end, in every op that takes an index"
NUMPY = "brackets and axes mean what they mean in NumPy"

ON_PURPOSE = [
    OnPurpose("maximum", [1, 2, 3], "mg.maximum(x, 2.0)", "torch.clamp(x, min=2.0)", NUMBER),
    OnPurpose("minimum", [1, 2, 3], "mg.minimum(x, 2.0)", "torch.clamp(x, max=2.0)", NUMBER),
    OnPurpose(
        "clamp",
        [0, 1, 2],
        "mg.clamp(x, 1, 1)",
        "torch.clamp(x, 1, 1)",
        "where min = max the result is a constant (§7)",
    ),
    OnPurpose(
        "clamp",
        [0, 1, 2],
        "mg.clamp(x, 2, 1)",
        "torch.clamp(x, 2, 1)",
        "min above max is an error (§7)",
    ),
    OnPurpose("max", [3, 1, 3], "mg.max(x, dim=0)", "torch.max(x, 0).values", TIES),
    OnPurpose("min", [1, 1, 3], "mg.min(x, dim=0)", "torch.min(x, 0).values", TIES),
    OnPurpose(
        "max_pool2d",
        [[[[3, 3], [1, 3]]]],
        "mg.max_pool2d(x, 2)",
        "F.max_pool2d(x, 2)",
        "ties in a window share evenly, total 1 (§7)",
    ),
    OnPurpose("max", [1, 2], "mg.max(x)", "torch.amax(x, 0)", DEAD, g=INF),
    OnPurpose("abs", [0, 1], "mg.abs(x)", "torch.abs(x)", DEAD, g=INF),
    OnPurpose("leaky_relu", [-1, 1], "mg.leaky_relu(x, 0.0)", "F.leaky_relu(x, 0.0)", DEAD, g=INF),
    OnPurpose("sqrt", -0.0, "mg.sqrt(x)", "torch.sqrt(x)", ZERO),
    OnPurpose("ln", -0.0, "mg.ln(x)", "torch.log(x)", ZERO),
    OnPurpose("ln", -2, "mg.ln(x)", "torch.log(x)", OUTSIDE),
    OnPurpose("log1p", -3, "mg.log1p(x)", "torch.log1p(x)", OUTSIDE),
    OnPurpose(
        "hypot",
        0,
        "mg.hypot(x, 0.0)",
        "torch.hypot(x, 0 * x.detach())",
        "slope 0 at the kink, as for abs and norm (§7, the op's card)",
    ),
    OnPurpose(
        "logsumexp",
        [-INF, -INF],
        "mg.logsumexp(x)",
        "torch.logsumexp(x, 0)",
        "a cell at -inf gets 0, and so do all of them (the op's card)",
    ),
    OnPurpose(
        "softplus",
        25,
        "mg.softplus(x) - 25",
        "F.softplus(x) - 25",
        "exact everywhere; PyTorch's is x itself above its threshold of 20",
    ),
    OnPurpose("gelu", 1e200, "mg.gelu(x)", 'F.gelu(x, approximate="tanh")', FAR),
    OnPurpose("gelu", -INF, "mg.gelu(x)", 'F.gelu(x, approximate="tanh")', FAR),
    OnPurpose("gelu_erf", -INF, "mg.gelu_erf(x)", "F.gelu(x)", FAR),
    OnPurpose("silu", -INF, "mg.silu(x)", "F.silu(x)", FAR),
    OnPurpose("norm", [3e200, 4e200], "mg.norm(x)", "torch.linalg.vector_norm(x)", FAR),
    OnPurpose(
        "var",
        [1, 2],
        "mg.var(x, correction=3)",
        "torch.var(x, correction=3)",
        "2 (x - mean) / 0 keeps its sign",
    ),
    OnPurpose(
        "rms_norm",
        [1e-4],
        "mg.rms_norm(x)",
        "F.rms_norm(x, (1,))",
        "eps is 1e-6 for every dtype; PyTorch's is that of the dtype",
    ),
    OnPurpose(
        "scatter_add",
        [1, 2],
        "mg.scatter_add(mg.tensor([0.0]), 0, [0], x)",
        "torch.zeros(1).double().scatter_add(0, torch.tensor([0]), x)",
        "index may be smaller than src; PyTorch's backward takes equal shapes only",
    ),
    OnPurpose("gather", [1, 2], "mg.gather(x, 0, [-1])", f"torch.gather(x, 0, {INDEX})", COUNTS),
    OnPurpose(
        "index_select", [1, 2], "mg.index_select(x, 0, [-1])", f"x.index_select(0, {INDEX})", COUNTS
    ),
    OnPurpose(
        "cross_entropy",
        [[0, 0]],
        "mg.cross_entropy(x, [-1])",
        f"F.cross_entropy(x, {INDEX})",
        COUNTS,
    ),
    OnPurpose("getitem", [1, 2, 3], "x[::-1]", "x[::-1]", NUMPY),
    OnPurpose("getitem", CUBE, "x[0, :, [0, 1, 0]]", "x[0, :, [0, 1, 0]]", NUMPY),
    OnPurpose("sum", [1, 2], "mg.sum(x, dim=())", "torch.sum(x, ())", NUMPY),
]
