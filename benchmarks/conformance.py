"""Every op against PyTorch, forward and gradient, in float64: `python -m benchmarks.conformance`.

Random calls run in both. How far two results may be apart depends on what was added up on the way,
so a difference is told relative to Σ|terms|, cell by cell, from PyTorch's own Jacobian J of the
call and the upstream gradient g:

    forward    |y_o| + Σ_i |J_oi x_i|    what y moves by when every operand moves by its own size:
                                         Σ|x| for a sum, Σ|a||b| for a product of matrices
    gradient   Σ_o |g_o J_oi|            every term on its way into one cell of an operand

Where one of the two subtracts what is much larger than the result (1 - y² of tanh, x - mean of
var), the size of that is added, by the formulas of `RESULT_TERMS` and `SLOPE_TERMS`; nothing else
is forgiven. The columns under "plain" divide by the result alone instead. Infinities and NaN must
stand in the same cells; a difference below 1e-300 is underflow, and counts as none.

What differs on purpose is kept out of the random calls, shown below the table, and must still
differ. Exit code 1 if a difference is above 1e-12, if an op of ours is missing here, or if fewer
than 2,000 calls ran.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

import minigrad as mg
from benchmarks.conformance_cases import CASES, Rng
from benchmarks.conformance_purpose import ON_PURPOSE
from benchmarks.conformance_table import LEFT_OUT, RESULT_TERMS, SHARED, SLOPE_TERMS, TINY

Array = np.ndarray
Operands = list[Any]
Params = dict[str, Any]
LIMIT = 1e-12
CALLS = 60  # of each op
AT_LEAST = 2000
SEED = 0


class Answer(NamedTuple):
    """What one system says to a call: the result, and the gradient of every operand array."""

    y: Array
    gradients: list[Array]


@dataclass
class Worst:
    """The largest differences of one op, and the call that was furthest off."""

    calls: int = 0
    forward: float = 0.0
    gradient: float = 0.0
    plain_forward: float = 0.0
    plain_gradient: float = 0.0
    at: str = ""

    @property
    def worst(self) -> float:
        return max(self.forward, self.gradient)


# --- one call in both systems ---------------------------------------------------------------------


def is_leaf(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def drawn(name: str, rng: Rng) -> tuple[Operands, Params]:
    """A random call: operands in the order of the op's card, and all parameters."""
    named, given = CASES[name](rng)
    flat = named["xs"] if "xs" in named else [named[word] for word in mg.registry[name].inputs]
    operands = [np.asarray(v) if isinstance(v, np.generic) else v for v in flat]
    given = {word: value for word, value in given.items() if value is not None}
    return operands, {**mg.registry[name].params, **given}


def ask_minigrad(name: str, operands: Operands, params: Params, rng: Rng) -> tuple[Answer, Array]:
    """Our answer, and the upstream gradient that was drawn for it."""
    card = mg.registry[name]
    given = [mg.tensor(v, requires_grad=True) if is_leaf(v) else v for v in operands]
    named = {"xs": given} if card.variadic else dict(zip(card.inputs, given, strict=True))
    out = card.function(**named, **params)
    g = np.asarray(rng.normal(size=out.shape), out.dtype)
    leaves = [v for v in given if isinstance(v, mg.Tensor)]
    return Answer(out.numpy(), list(mg.grad(out, leaves, g))), g


def ask_torch(
    name: str, operands: Operands, params: Params, g: Array
) -> tuple[Answer, list[Array]]:
    """PyTorch's answer, and its Jacobian by every operand array: (cells of y, *shape)."""
    given = [
        torch.tensor(v, requires_grad=is_leaf(v)) if isinstance(v, np.ndarray) else v
        for v in operands
    ]
    y = SHARED[name](*given, **params)
    leaves = [v for v in given if isinstance(v, torch.Tensor) and v.requires_grad]

    def pulled(upstream: Array, batched: bool) -> list[Array]:
        found = torch.autograd.grad(
            y,
            leaves,
            torch.from_numpy(upstream),
            retain_graph=True,
            is_grads_batched=batched,
            allow_unused=True,
            materialize_grads=True,
        )
        return [f.numpy() for f in found]

    cells = np.eye(g.size, dtype=g.dtype).reshape(g.size, *g.shape)
    jacobian = pulled(cells, True) if g.size else [np.zeros((0, *v.shape)) for v in leaves]
    return Answer(y.detach().numpy(), pulled(g, False)), jacobian


# --- how far apart --------------------------------------------------------------------------------


def finite(a: Array) -> Array:
    """|a|; an infinite term says nothing about rounding, and both sides must show it anyway."""
    return np.where(np.isfinite(a), np.abs(a), 0)


def apart(a: Array, b: Array, scale: Any = None) -> float:
    """The worst |a - b| / scale, or / the larger of the two; inf for other shapes, NaN and ∞."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return np.inf
    if scale is None:
        scale = np.maximum(np.abs(a), np.abs(b))
    same = (a == b) | ((a != a) & (b != b)) | (np.abs(a - b) < TINY)
    ratio = np.where(same, 0, np.abs(a - b) / np.where(same, 1, scale))
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio), initial=0))


def compare(name: str, rng: Rng, worst: Worst) -> None:
    """One random call in both systems; note how far they are apart."""
    operands, params = drawn(name, rng)
    mine, g = ask_minigrad(name, operands, params, rng)
    peer, jacobian = ask_torch(name, operands, params, g)
    leaves = [v for v in operands if is_leaf(v)]
    terms = finite(peer.y)
    for x, j in zip(leaves, jacobian, strict=True):
        moved = np.sum(finite(j * x), axis=tuple(range(1, j.ndim)))
        terms = terms + np.reshape(moved, peer.y.shape)
    if name in RESULT_TERMS:
        terms = terms + RESULT_TERMS[name](*operands, **params)
    forward, gradients = apart(mine.y, peer.y, terms), [0.0]
    more: list[Any] = [0.0] * len(leaves)
    if name in SLOPE_TERMS:
        found = SLOPE_TERMS[name](np.abs(g), peer.y, *operands, **params)
        found = found if isinstance(found, list) else [found]  # of the first operands
        more[: len(found)] = found
    for a, b, j, extra in zip(mine.gradients, peer.gradients, jacobian, more, strict=True):
        terms = np.tensordot(np.abs(g).ravel(), finite(j), 1) + np.asarray(extra)
        gradients.append(apart(a, b, terms))
        worst.plain_gradient = max(worst.plain_gradient, apart(a, b))
    if max(forward, *gradients) > worst.worst:
        worst.at = f"{name}: operands {operands}, {params}, g = {g}"
    worst.calls += 1
    worst.forward = max(worst.forward, forward)
    worst.gradient = max(worst.gradient, *gradients)
    worst.plain_forward = max(worst.plain_forward, apart(mine.y, peer.y))


# --- all of them ----------------------------------------------------------------------------------


def row(name: str, calls: Any, *numbers: Any) -> str:
    told = [f"{n:.1e}" if isinstance(n, float) else n for n in numbers]
    return f"{name:<34}{calls:>7}" + "".join(f"{text:>11}" for text in told)


def run(name: str) -> Worst:
    """All random calls of one op. What one of the two refuses counts as infinitely far."""
    rng, worst = np.random.default_rng([SEED, *name.encode()]), Worst()
    for _ in range(CALLS):
        try:
            compare(name, rng, worst)
        except Exception as problem:
            worst.forward = np.inf
            worst.at = f"{name}: {type(problem).__name__}: {problem}"
            break
    return worst


def main() -> int:
    """Print the table, then what differs on purpose; 0 if everything is as it should be."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "(var|std).*degrees of freedom")
    known = {*SHARED, *LEFT_OUT}
    failures = [f"{name} is missing in SHARED" for name in mg.registry if name not in known]
    print(f"minigrad {mg.__version__} against PyTorch {torch.__version__}, float64\n")
    print(row("", "", "Σ|terms|", "", "plain", ""))
    print(row("op", "calls", "forward", "gradient", "forward", "gradient"))
    found: dict[str, Worst] = {}
    with np.errstate(all="ignore"):
        for name in SHARED:
            found[name] = w = run(name)
            shown = w.forward, w.gradient, w.plain_forward, w.plain_gradient
            print(row(name, w.calls, *shown, *(["  <--"] if not w.worst <= LIMIT else [])))
            failures += [w.at] if not w.worst <= LIMIT else []
        for name, reason in LEFT_OUT.items():
            print(f"{name:<34}left out: {reason}")
        print("\nOn purpose; x̄ is the gradient of x, for ones as upstream gradient ȳ if not told")
        for case in ON_PURPOSE:
            print(case)
            failures += [] if case.differs else [f"{case.mine} of {case.x} differs no longer"]

    total = sum(w.calls for w in found.values())
    if total < AT_LEAST:
        failures.append(f"only {total} calls ran, {AT_LEAST} are wanted")
    print(*(f"\nFAILED {failure}" for failure in failures), sep="")
    name = max(found, key=lambda n: found[n].worst)
    print(
        f"\n{total:,} calls of {len(found)} ops, {len(ON_PURPOSE)} differences on purpose; "
        f"worst relative to Σ|terms|: {found[name].worst:.1e} ({name}), limit {LIMIT:.0e}"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
