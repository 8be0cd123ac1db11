"""Pooling over images: the largest cell of each window, or its mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, floating
from ..card import Kink
from ..domains import Cases, Rng, Sample, distinct
from ..errors import ShapeError
from ..op import op
from ..windows import Pair, fold_back, pair, refuse_image, windows


def pool(name: str, kernel_size: Any, stride: Any, padding: Any) -> tuple[Pair, Pair, Pair]:
    """Kernel, stride (None: the kernel) and padding as pairs. Raises ShapeError."""
    kernel = pair(name, "kernel_size", kernel_size, 1)
    step = kernel if stride is None else pair(name, "stride", stride, 1)
    edge = pair(name, "padding", padding, 0)
    if edge[0] > kernel[0] // 2 or edge[1] > kernel[1] // 2:
        raise ShapeError(f"{name}: padding {padding!r} must be at most half of kernel_size")
    return kernel, step, edge


def _pooled(draw: Any) -> Cases:
    def calls(rng: Rng) -> Iterator[Sample]:
        rows: list[tuple[Shape, dict[str, Any]]] = [
            ((1, 1, 3, 3), {"kernel_size": 2, "stride": 1}),
            ((1, 1, 4, 4), {"kernel_size": 2}),
            ((2, 1, 3, 4), {"kernel_size": (2, 3), "stride": 1}),
            ((1, 2, 5, 3), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ]
        for shape, given in rows:
            yield (draw(rng, shape),), {"stride": None, "padding": 0, **given}

    return Cases("images (n, c, h, w) and a kernel that fits", calls)


def _pool_by_hand(fold: Any, fill: float) -> Any:
    def reference(x: Array, kernel_size: Any, stride: Any, padding: Any) -> Array:
        (kh, kw), (ph, pw) = np.broadcast_to(kernel_size, 2), np.broadcast_to(padding, 2)
        sh, sw = (kh, kw) if stride is None else np.broadcast_to(stride, 2)
        wide = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=fill)
        size = ((wide.shape[2] - kh) // sh + 1, (wide.shape[3] - kw) // sw + 1)
        y = np.zeros((*x.shape[:2], *size))
        for n, c, i, j in np.ndindex(y.shape):
            y[n, c, i, j] = fold(wide[n, c, i * sh : i * sh + kh, j * sw : j * sw + kw])
        return y

    return reference


def pull_max_pool(g: Array, x: Array, y: Array, how: tuple[Pair, Pair, Pair]) -> Array:
    """g to the largest cell of each window, split evenly among ties."""
    kernel, stride, padding = how
    seen = windows(x, kernel, stride, padding, (1, 1), -np.inf)
    inside = windows(np.ones(x.shape, bool), kernel, stride, padding, (1, 1), False)
    tied = ((seen == y[..., None, None]) | (seen != seen)) & inside
    shares = np.where(tied, (g / tied.sum(axis=(4, 5)))[..., None, None], 0)
    return fold_back(shares, x.shape, stride, padding, (1, 1))


@op(
    tex=r"y_{i,j} = \max_{\text{window}} x",
    domain=_pooled(distinct),
    kinks=Kink(
        "ties in a window share evenly, total 1",
        {"x": [[[[1.0, 3.0], [3.0, 2.0]]]], "kernel_size": 2},
        {"x": [[[[0, 0.5], [0.5, 0]]]]},
    ),
    pulls={
        "x": (
            lambda g, x, y, kernel_size, stride, padding: pull_max_pool(
                g, x, y, pool("max_pool2d", kernel_size, stride, padding)
            ),
            r"\bar y \text{ to the largest of each window}",
        )
    },
    reference=_pool_by_hand(np.max, -np.inf),
)
def max_pool2d(x: Any, *, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
    """The largest cell of each window; stride is the kernel's size if left out."""
    kernel, step, edge = pool("max_pool2d", kernel_size, stride, padding)
    refuse_image("max_pool2d", floating("max_pool2d", "x", x), kernel, edge, (1, 1))
    return np.max(windows(x, kernel, step, edge, (1, 1), -np.inf), axis=(4, 5))


def pull_avg_pool(g: Array, x_shape: Shape, how: tuple[Pair, Pair, Pair]) -> Array:
    """An equal share of g to every cell of each window."""
    kernel, stride, padding = how
    shares = (g / np.float64(kernel[0] * kernel[1]))[..., None, None]
    return fold_back(np.broadcast_to(shares, (*g.shape, *kernel)), x_shape, stride, padding, (1, 1))


@op(
    tex=r"y_{i,j} = \frac{1}{n} \sum_{\text{window}} x",
    domain=_pooled(lambda rng, shape: rng.normal(size=shape)),
    pulls={
        "x": (
            lambda g, x_shape, kernel_size, stride, padding: pull_avg_pool(
                g, x_shape, pool("avg_pool2d", kernel_size, stride, padding)
            ),
            r"\frac{1}{n} \bar y \text{ to each cell of each window}",
        )
    },
    reference=_pool_by_hand(np.mean, 0.0),
)
def avg_pool2d(x: Any, *, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
    """The mean of each window; padding counts as zeros."""
    kernel, step, edge = pool("avg_pool2d", kernel_size, stride, padding)
    refuse_image("avg_pool2d", floating("avg_pool2d", "x", x), kernel, edge, (1, 1))
    seen = windows(x, kernel, step, edge, (1, 1), 0.0)
    return np.mean(seen, axis=(4, 5), dtype=np.float64).astype(x.dtype)
