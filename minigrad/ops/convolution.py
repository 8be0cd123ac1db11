"""Convolution and pooling over images (batch, channels, height, width): sums over windows.

`windows` lays a view of every window beside the image without copying; its inverse, `fold_back`,
adds what comes back from overlapping windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, is_whole
from ..card import Kink
from ..domains import Cases, Rng, Sample, distinct
from ..errors import ShapeError
from ..op import op

Pair = tuple[int, int]


def pair(name: str, word: str, value: Any, low: int) -> Pair:
    """A whole number, or one for the height and one for the width. Raises ShapeError."""
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2 or not all(is_whole(n) and n >= low for n in both):
        raise ShapeError(f"{name}: {word} {value!r} must be one or two whole numbers from {low} on")
    return int(both[0]), int(both[1])


def windows(
    x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, fill: float
) -> Array:
    """Every window of the padded x: (batch, channels, rows, columns, and the kernel's two)."""
    edges = ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2)
    wide = np.pad(x, edges, constant_values=fill)
    span = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    seen = np.lib.stride_tricks.sliding_window_view(wide, span, axis=(2, 3))
    return seen[:, :, :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]


def fold_back(back: Array, x_shape: Shape, stride: Pair, padding: Pair, dilation: Pair) -> Array:
    """The inverse of `windows`: what each window returns, added up in the shape of x."""
    height, width = x_shape[2] + 2 * padding[0], x_shape[3] + 2 * padding[1]
    wide = np.zeros((*x_shape[:2], height, width))
    rows, columns = back.shape[2:4]
    for i in range(back.shape[4]):
        for j in range(back.shape[5]):
            top, left = i * dilation[0], j * dilation[1]
            wide[
                :,
                :,
                top : top + rows * stride[0] : stride[0],
                left : left + columns * stride[1] : stride[1],
            ] += back[..., i, j]
    return wide[:, :, padding[0] : height - padding[0], padding[1] : width - padding[1]]


def refuse_image(name: str, x: Any, kernel: Pair, padding: Pair, dilation: Pair) -> None:
    """Raise ShapeError unless x is a batch of images that the kernel fits into."""
    if np.ndim(x) != 4:
        raise ShapeError(
            f"{name}: x {np.shape(x)} must have the axes (batch, channels, height, width)"
        )
    for axis in (0, 1):
        room, span = x.shape[2 + axis] + 2 * padding[axis], dilation[axis] * (kernel[axis] - 1) + 1
        if room < span:
            raise ShapeError(
                f"{name}: the kernel {kernel} spans {span} cells, but x {x.shape} with padding "
                f"{padding} has {room} along dim {2 + axis}"
            )


# --- convolution ----------------------------------------------------------------------------------

Settings = tuple[Pair, Pair, Pair]


def settings(stride: Any, padding: Any, dilation: Any) -> Settings:
    """Stride, padding and dilation as pairs."""
    return (
        pair("conv2d", "stride", stride, 1),
        pair("conv2d", "padding", padding, 0),
        pair("conv2d", "dilation", dilation, 1),
    )


def grouped(x: Array, weight_shape: Shape, how: Settings, groups: int) -> Array:
    """The windows of x with the channels split into groups: (n, group, channel, …)."""
    seen = windows(x, (weight_shape[2], weight_shape[3]), *how, fill=0.0)
    return seen.reshape(seen.shape[0], groups, -1, *seen.shape[2:])


def pull_image(g: Array, x_shape: Shape, weight: Array, how: Settings, groups: int) -> Array:
    upstream = g.reshape(g.shape[0], groups, -1, *g.shape[2:])
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    back = np.einsum("ngohw,gockl->ngchwkl", upstream, kernels, optimize=True)
    return fold_back(back.reshape(g.shape[0], -1, *back.shape[3:]), x_shape, *how)


def pull_kernel(g: Array, x: Array, weight_shape: Shape, how: Settings, groups: int) -> Array:
    upstream = g.reshape(g.shape[0], groups, -1, *g.shape[2:])
    seen = grouped(x, weight_shape, how, groups)
    back = np.einsum("ngohw,ngchwkl->gockl", upstream, seen, optimize=True)
    return np.asarray(back.reshape(weight_shape))


def _images(rng: Rng) -> Iterator[Sample]:
    rows: list[tuple[Shape, Shape, dict[str, Any]]] = [
        ((1, 1, 3, 3), (1, 1, 2, 2), {}),
        ((2, 2, 4, 3), (3, 2, 2, 2), {"padding": 1}),
        ((1, 1, 5, 4), (2, 1, 3, 2), {"stride": 2, "padding": (1, 0)}),
        ((1, 4, 3, 3), (2, 2, 2, 2), {"groups": 2}),
        ((1, 1, 5, 5), (1, 1, 2, 2), {"dilation": 2, "stride": (1, 2)}),
    ]
    for x, weight, given in rows:
        yield tuple(rng.normal(size=s) for s in (x, weight, weight[:1])), given


def _by_hand(
    x: Array, weight: Array, bias: Array, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """The definition, cell by cell."""
    (sh, sw), (ph, pw), (dh, dw) = (np.broadcast_to(v, 2) for v in (stride, padding, dilation))
    wide = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    out, channels, kh, kw = weight.shape
    rows = (wide.shape[2] - dh * (kh - 1) - 1) // sh + 1
    columns = (wide.shape[3] - dw * (kw - 1) - 1) // sw + 1
    y = np.zeros((len(x), out, rows, columns))
    for n, o, i, j in np.ndindex(y.shape):
        first = o // (out // groups) * channels
        window = wide[n, first : first + channels, i * sh :, j * sw :]
        window = window[:, : dh * (kh - 1) + 1 : dh, : dw * (kw - 1) + 1 : dw]
        y[n, o, i, j] = np.sum(window * weight[o]) + bias[o]
    return y


@op(
    tex=r"y_{o,i,j} = \text{bias}_o + \sum_{c,k,l} \text{weight}_{o,c,k,l} \, x_{c,i+k,j+l}",
    domain=Cases("images (n, c, h, w), kernels (out, c / groups, h, w), a bias (out)", _images),
    pulls={
        "x": (
            lambda g, x_shape, weight, stride, padding, dilation, groups: pull_image(
                g, x_shape, weight, settings(stride, padding, dilation), groups
            ),
            r"\sum_{o,k,l} \text{weight}_{o,c,k,l} \, \bar y_{o,i-k,j-l}",
        ),
        "weight": (
            lambda g, x, weight_shape, stride, padding, dilation, groups: pull_kernel(
                g, x, weight_shape, settings(stride, padding, dilation), groups
            ),
            r"\sum_{i,j} \bar y_{o,i,j} \, x_{c,i+k,j+l}",
        ),
        "bias": (
            lambda g, bias_shape: np.sum(g, axis=(0, 2, 3), dtype=np.float64),
            r"\sum_{i,j} \bar y_{o,i,j}",
        ),
    },
    reference=_by_hand,
)
def conv2d(
    x: Any,
    weight: Any,
    bias: Any = 0.0,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Any:
    """Cross-correlation of images with kernels, as in PyTorch; settings are ints or pairs."""
    how = settings(stride, padding, dilation)
    if np.ndim(weight) != 4:
        raise ShapeError(
            f"conv2d: weight {np.shape(weight)} must have the axes (out, in, height, width)"
        )
    refuse_image("conv2d", x, (weight.shape[2], weight.shape[3]), how[1], how[2])
    if not is_whole(groups) or groups < 1 or weight.shape[0] % groups:
        raise ShapeError(
            f"conv2d: groups {groups!r} must divide weight's {weight.shape[0]} kernels"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise ShapeError(
            f"conv2d: x {x.shape} has {x.shape[1]} channels, but weight {weight.shape} with groups "
            f"{groups} takes {weight.shape[1] * groups}"
        )
    if np.shape(bias) not in ((), weight.shape[:1]):
        raise ShapeError(
            f"conv2d: bias {np.shape(bias)} must have one cell per kernel {weight.shape[:1]}"
        )
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    seen = grouped(x, weight.shape, how, groups)
    y = np.einsum("ngchwkl,gockl->ngohw", seen, kernels, optimize=True)
    return y.reshape(len(x), weight.shape[0], *y.shape[3:]) + np.reshape(bias, (-1, 1, 1))


# --- pooling --------------------------------------------------------------------------------------


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
    tied = (seen == y[..., None, None]) | (seen != seen)
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
    refuse_image("max_pool2d", x, kernel, edge, (1, 1))
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
    refuse_image("avg_pool2d", x, kernel, edge, (1, 1))
    seen = windows(x, kernel, step, edge, (1, 1), 0.0)
    return np.mean(seen, axis=(4, 5), dtype=np.float64).astype(x.dtype)
