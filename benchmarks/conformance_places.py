"""Random calls of the ops that move, pick and combine cells, for `benchmarks.conformance_cases`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.conformance_cells import (
    Call,
    Draw,
    Random,
    Rng,
    Shape,
    axis,
    chance,
    distinct,
    normal,
    operand,
    pick,
    real,
    sizes,
    some_axes,
)

# --- movement and copies --------------------------------------------------------------------------


def moved(params: Callable[[Rng, Shape], dict[str, Any]], low: int = 0) -> Random:
    def call(rng: Rng) -> Call:
        shape = sizes(rng, low)
        return {"x": real(rng, shape)}, params(rng, shape)

    return call


def order(rng: Rng, ndim: int) -> tuple[int, ...]:
    return tuple(int(a) - ndim * chance(rng, 0.3) for a in rng.permutation(ndim))


def reshaped(rng: Rng, shape: Shape) -> dict[str, Any]:
    """The prime factors of the size, dealt into new axes; one of them may be left open."""
    wanted = [1] * int(rng.integers(1, 4))
    rest = int(np.prod(shape, dtype=int))
    for factor in (2, 2, 2, 2, 3, 3, 3, 3):
        if rest and rest % factor == 0:
            rest //= factor
            wanted[rng.integers(len(wanted))] *= factor
    wanted[rng.integers(len(wanted))] *= rest
    if 0 not in wanted and chance(rng, 0.3):
        wanted[rng.integers(len(wanted))] = -1
    return {"shape": tuple(wanted)}


def stretch(rng: Rng, shape: Shape) -> dict[str, Any]:
    dim = axis(rng, len(shape))
    start = int(rng.integers(0, shape[dim] + 1))
    length = int(rng.integers(0, shape[dim] - start + 1))
    back = start < shape[dim] and chance(rng, 0.3)
    return {"dim": dim, "start": start - shape[dim] * back, "length": length}


def padded(rng: Rng, shape: Shape) -> dict[str, Any]:
    pairs = int(rng.integers(1, len(shape) + 1))
    pad = tuple(int(n) for n in rng.integers(0, 3, 2 * pairs))
    return {"pad": pad, "value": pick(rng, 0.0, -1.5)}


def joined(new_axis: bool) -> Random:
    def call(rng: Rng) -> Call:
        shape = list(sizes(rng, low=0 if new_axis else 1, high=3))
        dim = axis(rng, len(shape) + new_axis)
        xs = []
        for _ in range(rng.integers(1, 4)):
            if not new_axis:
                shape[dim] = int(rng.integers(0, 4))
            xs.append(real(rng, tuple(shape)))
        return {"xs": xs}, {"dim": dim}

    return call


def broadcast(rng: Rng) -> Call:
    shape = sizes(rng)
    return {"x": operand(rng, shape, real)}, {"shape": shape}


# --- indexing -------------------------------------------------------------------------------------


def indices(rng: Rng, shape: Shape, size: int) -> Any:
    """Whole numbers that point at cells of an axis, from either end, repeats included."""
    return rng.integers(-size, size, shape)


def key(rng: Rng, shape: Shape) -> Any:
    """Ints, slices with any step, None and …; or index arrays side by side; or a mask."""
    if shape and chance(rng, 0.2):
        return rng.random(shape[: rng.integers(1, len(shape) + 1)]) < 0.5
    if shape and 0 not in shape and chance(rng, 0.4):
        first = int(rng.integers(len(shape)))
        last = int(rng.integers(first, len(shape))) + 1
        picked = sizes(rng, 0, 2, least=1)
        arrays = [np.asarray(indices(rng, picked, n)) for n in shape[first:last]]
        return (*(cut(rng, n, back=False) for n in shape[:first]), *arrays)
    parts: list[Any] = []
    for n in shape[: rng.integers(len(shape) + 1)]:
        parts += [None] if chance(rng, 0.15) else []
        parts.append(int(rng.integers(-n, n)) if n and chance(rng, 0.3) else cut(rng, n))
    if chance(rng, 0.3):
        parts = [..., *(cut(rng, n) for n in shape[len(shape) - len(parts) :])] if parts else [...]
        parts = parts[: len(shape) + 1]
    return tuple(parts)


def cut(rng: Rng, size: int, back: bool = True) -> slice:
    ends = [None if chance(rng, 0.4) else int(rng.integers(-size - 1, size + 2)) for _ in range(2)]
    return slice(*ends, pick(rng, None, 1, 2, 3, *((-1, -2) if back else ())))


def looked_up(rng: Rng) -> Call:
    rows, width = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    index = indices(rng, sizes(rng, 0, 3), rows)
    return {"index": index, "weight": normal(rng, (rows, width))}, {}


def selected(rng: Rng) -> Call:
    shape = sizes(rng, low=1, least=1)
    dim = axis(rng, len(shape))
    index = indices(rng, (int(rng.integers(0, 6)),), shape[dim])
    return {"x": real(rng, shape), "index": index}, {"dim": dim}


def added(rng: Rng) -> Call:
    given, params = selected(rng)
    shape = list(given["x"].shape)
    shape[params["dim"]] = len(given["index"])
    return {**given, "source": normal(rng, tuple(shape))}, {**params, "alpha": pick(rng, 1, -2.5)}


def gathered(rng: Rng) -> Call:
    """An index that may be smaller than x, and longer along dim."""
    shape = sizes(rng, low=1, least=1)
    dim = axis(rng, len(shape))
    wanted = [int(rng.integers(1 if chance(rng, 0.9) else 0, n + 1)) for n in shape]
    wanted[dim] = int(rng.integers(0, 6))
    index = indices(rng, tuple(wanted), shape[dim])
    return {"x": real(rng, shape), "index": index}, {"dim": dim}


def scattered(rng: Rng) -> Call:
    given, params = gathered(rng)
    src = tuple(int(n + rng.integers(0, 2)) for n in given["index"].shape)
    return {**given, "src": normal(rng, src)}, params


# --- linear algebra and images --------------------------------------------------------------------


def multiplied(rng: Rng) -> Call:
    """Matrices, batches that broadcast, and vectors on either side."""
    m, k, n = sizes(rng, 3, 3)
    batch = sizes(rng, 0, 2)
    a = (k,) if chance(rng, 0.2) else (m, k)
    b = (k,) if chance(rng, 0.2) else (k, n)
    if len(a) > 1:
        a = (*(1 if chance(rng, 0.25) else s for s in batch), *a)
    if len(b) > 1:
        b = (*batch[int(rng.integers(len(batch) + 1)) :], *b)
    return {"a": real(rng, a), "b": real(rng, b)}, {}


def crossed(rng: Rng) -> Call:
    return {"a": real(rng, sizes(rng, 1, 1)), "b": real(rng, sizes(rng, 1, 1))}, {}


EQUATIONS = """
    ij,jk->ik ij,jk i,j->ij i,i bij,bjk->bik ij->j ij-> ij->ji ii->i ii iij->ji ij,ij,ij->i ij,k->j
    ...i,i->... ...ij,...jk->...ik ...ij->...ji ij,jk,kl->il i,ij,j-> bhqd,bhkd->bhqk ba,B->aB
""".split()


def summed(rng: Rng) -> Call:
    """One of many equations; now and then an axis of size 1 stands for a longer one."""
    equation = str(rng.choice(EQUATIONS))
    size = {c: int(rng.choice(5, p=(0.03, 0.17, 0.3, 0.3, 0.2))) for c in equation}
    dots, xs = sizes(rng, 0, 2, least=1), []
    for term in equation.split("->")[0].split(","):
        own = term.replace("...", "")
        ones = {c: 1 if chance(rng, 0.08) else size[c] for c in own}
        lead = dots[int(rng.integers(len(dots) + 1)) :] if "..." in term else ()
        xs.append(real(rng, (*lead, *(ones[c] for c in own))))
    return {"xs": xs}, {"equation": equation}


def one_or_two(rng: Rng, low: int, high: int) -> Any:
    both = tuple(int(n) for n in rng.integers(low, high + 1, 2))
    return both if chance(rng, 0.5) else both[0]


def convolved(rng: Rng) -> Call:
    groups, wide = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    how = {"stride": (1, 3), "padding": (0, 2), "dilation": (1, 2)}
    given = {name: one_or_two(rng, *ends) for name, ends in how.items()}
    kernel = tuple(int(n) for n in rng.integers(1, 4, 2))
    gaps = np.broadcast_to(given["dilation"], 2)
    spans = [d * (k - 1) + 1 for d, k in zip(gaps, kernel, strict=True)]
    x = (pick(rng, 0, 1, 2, 2), groups * wide, *(int(n + rng.integers(0, 3)) for n in spans))
    weight = (groups * int(rng.integers(1, 3)), wide, *kernel)
    bias = pick(rng, normal(rng, weight[:1]), normal(rng, weight[:1]), 0.0, 1.5)
    operands = {"x": normal(rng, x), "weight": normal(rng, weight), "bias": bias}
    return operands, {**given, "groups": groups}


def pooled(draw: Draw) -> Random:
    def call(rng: Rng) -> Call:
        kernel = one_or_two(rng, 1, 3)
        edge = tuple(int(rng.integers(0, k // 2 + 1)) for k in np.broadcast_to(kernel, 2))
        room = (int(k + rng.integers(0, 4)) for k in np.broadcast_to(kernel, 2))
        x = draw(rng, (pick(rng, 0, 1, 2, 2), int(rng.integers(1, 3)), *room))
        stride = None if chance(rng, 0.3) else one_or_two(rng, 1, 3)
        return {"x": x}, {"kernel_size": kernel, "stride": stride, "padding": edge}

    return call


# --- the table ------------------------------------------------------------------------------------

PLACES: dict[str, Random] = {
    "cast": moved(lambda r, s: {"dtype": pick(r, "float64", "float32", "float16")}),
    "reshape": moved(reshaped),
    "transpose": moved(lambda r, s: {"dim0": axis(r, len(s)), "dim1": axis(r, len(s))}, low=1),
    "permute": moved(lambda r, s: {"dims": order(r, len(s))}),
    "squeeze": moved(lambda r, s: {"dim": some_axes(r, len(s))}),
    "unsqueeze": moved(lambda r, s: {"dim": axis(r, len(s) + 1)}),
    "flip": moved(lambda r, s: {"dims": order(r, len(s))[: r.integers(len(s) + 1)]}),
    "narrow": moved(stretch, low=1),
    "broadcast_to": broadcast,
    "repeat": moved(
        lambda r, s: {"sizes": tuple(map(int, r.integers(0, 3, len(s) + pick(r, 0, 1))))}
    ),
    "pad": moved(padded, low=1),
    "cat": joined(new_axis=False),
    "stack": joined(new_axis=True),
    "getitem": moved(lambda r, s: {"key": key(r, s)}),
    "index_select": selected,
    "embedding": looked_up,
    "gather": gathered,
    "index_add": added,
    "scatter_add": scattered,
    "matmul": multiplied,
    "outer": crossed,
    "einsum": summed,
    "conv2d": convolved,
    "max_pool2d": pooled(distinct),  # ties differ on purpose
    "avg_pool2d": pooled(normal),
    "dropout": moved(lambda r, s: {"p": pick(r, 0.5, 0.1, 0.0, 1.0), "seed": int(r.integers(99))}),
}
