"""From how many cells a compiled kernel beats NumPy: `python benchmarks/crossover.py`.

Prints time in NumPy divided by time in the kernel, medians of runs taken in turn. The size from
which every row stays above 1 belongs into `minigrad.kernels.LARGE`.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np

import minigrad as mg
from minigrad import kernels

SIZES = [2**n for n in range(10, 21, 2)]
RUNS = 15


def loss_of(op: str, size: int) -> mg.Tensor:
    """One op whose backward is measured: with and without a broadcast operand."""
    rng = np.random.default_rng(0)
    a = mg.tensor(rng.uniform(0.5, 1.5, (size // 64, 64)), requires_grad=True)
    if op == "tanh":
        return mg.tanh(a)
    return getattr(mg, op)(a, mg.tensor(rng.uniform(0.5, 1.5, 64), requires_grad=True))


def seconds(loss: mg.Tensor, seed: np.ndarray, large: int) -> float:
    """One backward pass with the crossover set to `large`."""
    kernels.LARGE = large
    start = time.perf_counter()
    mg.grad(loss, [], seed)
    return time.perf_counter() - start


def main() -> None:
    """Print the table of ratios."""
    print("NumPy / kernel".ljust(16), *(f"{size:>9,}" for size in SIZES))
    for op in ("tanh", "mul", "div", "pow"):
        ratios = []
        for size in SIZES:
            loss = loss_of(op, size)
            seed = np.ones(loss.shape)
            seconds(loss, seed, 0)  # compile
            pairs = [(seconds(loss, seed, 10**12), seconds(loss, seed, 0)) for _ in range(RUNS)]
            ratios.append(median(p[0] for p in pairs) / median(p[1] for p in pairs))
        print(op.ljust(16), *(f"{ratio:>9.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
