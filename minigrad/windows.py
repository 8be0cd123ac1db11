"""Windows over images (batch, channels, height, width): what convolution and pooling look through.

`windows` lays a view of every window beside the image without copying; its inverse, `fold_back`,
adds what comes back from overlapping windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import Array, Shape, is_whole
from .errors import ShapeError

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
    if min(kernel) < 1:
        raise ShapeError(f"{name}: the kernel {kernel} must have at least one cell")
    for axis in (0, 1):
        room, span = x.shape[2 + axis] + 2 * padding[axis], dilation[axis] * (kernel[axis] - 1) + 1
        if room < span:
            raise ShapeError(
                f"{name}: the kernel {kernel} spans {span} cells, but x {x.shape} with padding "
                f"{padding} has {room} along dim {2 + axis}"
            )
