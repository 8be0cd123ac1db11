"""Convolution over images: each cell of the result is a window times a kernel, added up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..axes import Array, Shape, is_whole
from ..domains import Cases, Rng, Sample
from ..errors import ShapeError
from ..op import op
from ..windows import Pair, fold_back, pair, refuse_image, windows

Settings = tuple[Pair, Pair, Pair]


def settings(stride: Any, padding: Any, dilation: Any) -> Settings:
    """Stride, padding and dilation as pairs."""
    return (
        pair("conv2d", "stride", stride, 1),
        pair("conv2d", "padding", padding, 0),
        pair("conv2d", "dilation", dilation, 1),
    )


def in_groups(array: Array, axis: int, groups: int) -> Array:
    """An axis split into (groups, what is in each)."""
    shape = array.shape
    return array.reshape(*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])


def grouped(x: Array, weight_shape: Shape, how: Settings, groups: int) -> Array:
    """The windows of x with the channels split into groups: (n, group, channel, …)."""
    kernel = weight_shape[2], weight_shape[3]
    return in_groups(windows(x, kernel, *how, fill=0.0), 1, groups)


def pull_image(g: Array, x_shape: Shape, weight: Array, how: Settings, groups: int) -> Array:
    upstream, kernels = in_groups(g, 1, groups), in_groups(weight, 0, groups)
    back = np.einsum("ngohw,gockl->ngchwkl", upstream, kernels, optimize=True)
    return fold_back(back.reshape(*x_shape[:2], *back.shape[3:]), x_shape, *how)


def pull_kernel(g: Array, x: Array, weight_shape: Shape, how: Settings, groups: int) -> Array:
    upstream, seen = in_groups(g, 1, groups), grouped(x, weight_shape, how, groups)
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
    kernels, seen = in_groups(weight, 0, groups), grouped(x, weight.shape, how, groups)
    y = np.einsum("ngchwkl,gockl->ngohw", seen, kernels, optimize=True)
    y = y.reshape(len(x), weight.shape[0], *y.shape[3:])
    return y + (np.reshape(bias, (-1, 1, 1)) if np.ndim(bias) else bias)
