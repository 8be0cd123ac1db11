"""Every op of ours as PyTorch says it: what `benchmarks.conformance` compares.

`SHARED` takes the operands in the order of the op's card, then all its parameters by name.
`RESULT_TERMS` and `SLOPE_TERMS` say how large the terms are where a difference can cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from minigrad.axes import axes_of, count, kept, share
from minigrad.kernels import logistic
from minigrad.ops.random import scale

Array = np.ndarray
Torch = torch.Tensor
TINY = 1e-300  # what is smaller has underflowed


# --- words that PyTorch spells differently --------------------------------------------------------


def tensor(value: Any) -> Torch:
    """A plain number as the operand that it is in our ops."""
    return torch.as_tensor(value, dtype=torch.float64)


def axes(x: Torch, dim: Any) -> Any:
    """`dim` as the axes it means; PyTorch takes axis 0 of a scalar."""
    return tuple(range(x.ndim)) or (0,) if dim is None else dim


def prod(x: Torch, dim: Any, keepdim: bool) -> Torch:
    """PyTorch multiplies along one axis at a time."""
    gone = axes_of("prod", dim, tuple(x.shape))
    for axis in gone:
        x = x.prod(axis, keepdim=True)
    return x if keepdim else x.squeeze(gone)


def along(dim: int, x: Torch, index: Torch) -> Torch:
    """PyTorch's gather and its kin count no index from the end."""
    return index % max(x.shape[dim], 1)


def classes(x: Torch, target: Torch) -> Torch:
    return target % x.shape[min(x.ndim - 1, 1)]


def is_mask(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind == "b"


def brackets(x: Torch, key: Any) -> Torch:
    """x[key]; PyTorch slices with no negative step, so such an axis is picked cell by cell."""
    parts = key if isinstance(key, tuple) else (key,)
    width = [p.ndim if is_mask(p) else 1 for p in parts]
    taken = sum(w for p, w in zip(parts, width, strict=True) if p is not None and p is not ...)
    axis, found = 0, []
    for part, wide in zip(parts, width, strict=True):
        if isinstance(part, slice) and (part.step or 1) < 0:
            cells = list(range(*part.indices(x.shape[axis])))
            x = x.index_select(axis, torch.tensor(cells, dtype=torch.long))
            part = slice(None)
        axis += 0 if part is None else x.ndim - taken if part is ... else wide
        found.append(torch.from_numpy(part) if isinstance(part, np.ndarray) else part)
    return x[tuple(found)]


def rms_norm(x: Torch, weight: Any, eps: float) -> Torch:
    if np.ndim(weight):
        return F.rms_norm(x, weight.shape, weight, eps)
    return F.rms_norm(x, x.shape[-1:], None, eps) * weight


def layer_norm(x: Torch, weight: Any, bias: Any, eps: float) -> Torch:
    if np.ndim(weight) and np.ndim(bias):
        return F.layer_norm(x, weight.shape, weight, bias, eps)
    return F.layer_norm(x, np.shape(weight) or x.shape[-1:], None, None, eps) * weight + bias


def conv2d(x: Torch, weight: Torch, bias: Any, **how: Any) -> Torch:
    if np.ndim(bias):
        return F.conv2d(x, weight, bias, **how)
    return F.conv2d(x, weight, None, **how) + bias


# --- the table ------------------------------------------------------------------------------------

SHARED: dict[str, Callable[..., Torch]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda x, e: torch.pow(x, e),
    "maximum": lambda a, b: torch.maximum(tensor(a), tensor(b)),
    "minimum": lambda a, b: torch.minimum(tensor(a), tensor(b)),
    "hypot": lambda a, b: torch.hypot(tensor(a), tensor(b)),
    "where": lambda mask, a, b: torch.where(mask, a, b),
    # elementary
    "neg": torch.neg,
    "abs": torch.abs,
    "recip": torch.reciprocal,
    "affine": lambda x, mul, add: mul * x + add,
    "clamp": lambda x, min, max: torch.clamp(x, min, max),
    "sqr": torch.square,
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "ln": torch.log,
    "log1p": torch.log1p,
    "erf": torch.erf,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "sign": torch.sign,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "atan": torch.atan,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    # activations
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": lambda x: F.softplus(x, threshold=40),  # from there on e^-x is below rounding
    "relu": torch.relu,
    "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
    "elu": lambda x, alpha: F.elu(x, alpha),
    "silu": F.silu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    # over axes
    "sum": lambda x, dim, keepdim: torch.sum(x, axes(x, dim), keepdim),
    "mean": lambda x, dim, keepdim: torch.mean(x, axes(x, dim), keepdim),
    "prod": prod,
    "max": lambda x, dim, keepdim: torch.amax(x, axes(x, dim), keepdim),
    "min": lambda x, dim, keepdim: torch.amin(x, axes(x, dim), keepdim),
    "var": lambda x, dim, correction, keepdim: torch.var(
        x, axes(x, dim), correction=correction, keepdim=keepdim
    ),
    "std": lambda x, dim, correction, keepdim: torch.std(
        x, axes(x, dim), correction=correction, keepdim=keepdim
    ),
    "norm": lambda x, p, dim, keepdim: torch.linalg.vector_norm(x, p, axes(x, dim), keepdim),
    "logsumexp": lambda x, dim, keepdim: torch.logsumexp(x, axes(x, dim), keepdim),
    "cumsum": lambda x, dim: torch.cumsum(x, dim),
    "cumprod": lambda x, dim: torch.cumprod(x, dim),
    # softmax, losses, normalisation
    "softmax": lambda x, dim: torch.softmax(x, dim),
    "log_softmax": lambda x, dim: torch.log_softmax(x, dim),
    "nll_loss": lambda x, t, reduction: F.nll_loss(x, classes(x, t), reduction=reduction),
    "cross_entropy": lambda x, t, reduction: F.cross_entropy(x, classes(x, t), reduction=reduction),
    "mse_loss": lambda x, target, reduction: F.mse_loss(x, target, reduction=reduction),
    "binary_cross_entropy_with_logits": lambda x, target, reduction: (
        F.binary_cross_entropy_with_logits(x, target, reduction=reduction)
    ),
    "rms_norm": rms_norm,
    "layer_norm": layer_norm,
    # movement and copies
    "copy": torch.clone,
    "cast": lambda x, dtype: x.to(getattr(torch, dtype)),
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, dim0, dim1: x.transpose(dim0, dim1),
    "permute": lambda x, dims: x.permute(dims),
    "squeeze": lambda x, dim: x.squeeze() if dim is None else x.squeeze(dim),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "flip": lambda x, dims: x.flip(dims),
    "narrow": lambda x, dim, start, length: x.narrow(dim, start, length),
    "broadcast_to": lambda x, shape: x.broadcast_to(shape),
    "repeat": lambda x, sizes: x.repeat(sizes),
    "pad": lambda x, pad, value: F.pad(x, pad, value=value),
    "cat": lambda *xs, dim: torch.cat(xs, dim),
    "stack": lambda *xs, dim: torch.stack(xs, dim),
    # indexing
    "getitem": brackets,
    "index_select": lambda x, index, dim: x.index_select(dim, along(dim, x, index)),
    "embedding": lambda index, weight: F.embedding(along(0, weight, index), weight),
    "gather": lambda x, index, dim: x.gather(dim, along(dim, x, index)),
    "index_add": lambda x, index, source, dim, alpha: x.index_add(
        dim, along(dim, x, index), source, alpha=alpha
    ),
    "scatter_add": lambda x, index, src, dim: x.scatter_add(
        dim, along(dim, x, index), src[tuple(map(slice, index.shape))]
    ),
    # linear algebra, images, randomness
    "matmul": torch.matmul,
    "outer": torch.outer,
    "einsum": lambda *xs, equation: torch.einsum(equation, *xs),
    "conv2d": conv2d,
    "max_pool2d": lambda x, kernel_size, stride, padding: F.max_pool2d(
        x, kernel_size, stride, padding
    ),
    "avg_pool2d": lambda x, kernel_size, stride, padding: F.avg_pool2d(
        x, kernel_size, stride, padding
    ),
    "dropout": lambda x, p, seed: x * torch.from_numpy(scale(p, seed, tuple(x.shape))),  # our mask
}

LEFT_OUT: dict[str, str] = {}  # op -> why PyTorch has nothing to compare it with


# --- differences that cancel ----------------------------------------------------------------------
# What a rule subtracts, in size: operands and parameters as in SHARED, but as arrays; g is |g|.


def softmax(x: Array, axis: int) -> Array:
    return torch.softmax(torch.from_numpy(x), axis).numpy()


def cross_entropy(g: Array, y: Array, x: Array, target: Array, reduction: str) -> Array:
    """softmax - 1 at the target; elsewhere there is nothing to cancel."""
    axis = min(x.ndim - 1, 1)
    losses = np.broadcast_to(share(g, reduction, target.size), target.shape)
    return softmax(x, axis) * np.expand_dims(losses, axis)


def centred(g: Array, x: Array, dim: Any, correction: float) -> Array:
    """x - mean x."""
    over, cells = axes_of("var", dim, x.shape), count(dim, x.shape)
    size = np.abs(x) + np.mean(np.abs(x), axis=over, keepdims=True)
    return kept(g, dim, x.shape) * size / np.maximum(cells - correction, 0.5)


def spread(g: Array, x: Array, weight: Any, eps: float, mean: bool) -> list[Array]:
    """(s - mean s - z mean(s z)) / root, with s = g · weight, for x; g · z for weight.

    z is x standardised: (x - mean x) / root, or x / root in rms_norm.
    """
    over = tuple(range(x.ndim - max(np.ndim(weight), 1), x.ndim))

    def average(a: Array) -> Array:
        return np.mean(a, axis=over, keepdims=True)

    root = np.sqrt(average((x - mean * average(x)) ** 2) + eps)
    s, z = np.abs(g * weight), (np.abs(x) + mean * average(np.abs(x))) / root
    terms = [(s + average(s) + np.abs(x - mean * average(x)) / root * average(s * z)) / root]
    return terms + [np.sum(g * z, tuple(range(over[0])))] * (np.ndim(weight) > 0)


def einsum(g: Array, y: Array, *xs: Array, equation: str) -> list[Array]:
    """Σ|terms| as it is; where an axis of size 1 meets a longer one, J has summed them already."""
    sizes = [torch.tensor(np.abs(x), requires_grad=True) for x in xs]
    return list(torch.autograd.grad(torch.einsum(equation, *sizes), sizes, torch.as_tensor(g)))


RESULT_TERMS: dict[str, Callable[..., Any]] = {
    "gelu": np.abs,  # PyTorch: x/2 (1 + tanh u), ours x / (1 + e^-2u); the first cancels for x < 0
    "gelu_erf": np.abs,  # PyTorch: x/2 (1 + erf), ours erfc
}
SLOPE_TERMS: dict[str, Callable[..., Any]] = {
    "tanh": lambda g, y, x: g,  # 1 - y²
    "expm1": lambda g, y, x: g,  # y + 1
    "sigmoid": lambda g, y, x: g * y,  # y - y²
    "silu": lambda g, y, x: g * logistic(x),  # σ + xσ(1 - σ)
    "gelu": lambda g, y, x: g,  # PyTorch: (1 + tanh u)/2 + …
    "gelu_erf": lambda g, y, x: g,  # (1 + erf)/2 + …
    "softmax": lambda g, y, x, dim: g * y,  # y g - y Σ g y
    "log_softmax": lambda g, y, x, dim: g,  # g - e^y Σ g
    "cross_entropy": cross_entropy,
    "binary_cross_entropy_with_logits": lambda g, y, x, target, reduction: (  # σ - target
        share(g, reduction, x.size) * target
    ),
    "var": lambda g, y, x, dim, correction, keepdim: 2 * centred(g, x, dim, correction),
    "std": lambda g, y, x, dim, correction, keepdim: (
        centred(g, x, dim, correction) / np.maximum(kept(y, dim, x.shape), TINY)
    ),
    "rms_norm": lambda g, y, x, weight, eps: spread(g, x, weight, eps, mean=False),
    "layer_norm": lambda g, y, x, weight, bias, eps: spread(g, x, weight, eps, mean=True),
    "einsum": einsum,  # of every operand
}
