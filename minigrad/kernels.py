"""The only file that knows Numba: it turns the rule of an elementwise op into one fused loop.

A rule is written once, with operators and NumPy functions that work on an array and on a scalar
alike. Small arrays run it in NumPy. For large ones its source becomes a loop that reads upstream
gradient and saved values once and does slope × upstream × broadcast reduction × accumulation on the
way, without temporaries. The loop is generated into a real file named after its own text, so Numba
keeps the machine code on disk and an edited rule is never served an old kernel. Sums are
compensated (Knuth 1969), so a million rows lose nothing against NumPy.

`MINIGRAD_JIT=0` switches it off; whatever cannot be compiled runs in NumPy, and `why_not` says why.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import numbers
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from .kernel_source import NoKernel, kernel_source
from .paths import kernel_folder

Array = NDArray[Any]
LARGE = 2**20  # cells from which a loop beats NumPy; measured by benchmarks/crossover.py
_AXES = 3  # adjacent axes are merged first; what still has more runs in NumPy


def select(condition: Any, chosen: Any, other: Any) -> Any:
    """`chosen` where the condition holds, else `other`: for arrays, and scalars in a kernel."""
    return np.where(condition, chosen, other)


_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def erf(x: Any) -> Any:
    """The error function: for arrays, and scalars in a kernel. NumPy has none, C's library has."""
    return np.asarray(_erf(x)).astype(np.result_type(x))


def erfc(x: Any) -> Any:
    """1 - erf(x), without the cancellation: for arrays, and scalars in a kernel."""
    return np.asarray(_erfc(x)).astype(np.result_type(x))


def logistic(x: Any) -> Any:
    """1 / (1 + e^-x), exact on both sides: only the exponential of -|x| is taken."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


_modules: dict[str, ModuleType] = {}  # generated text -> the kernels in it
_refused: dict[tuple[str, str], str] = {}  # (text, dtypes) -> why Numba does not compile it
_compiling = threading.RLock()


def _load(text: str) -> ModuleType:
    """The module of a generated text: its file is named after it, and trusted only if equal."""
    if text not in _modules:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = kernel_folder() / f"kernel_{digest}.py"
        if not path.exists() or path.read_text() != text:
            draft = Path(f"{path}.{os.getpid()}")
            draft.write_text(text)
            draft.replace(path)
        spec = importlib.util.spec_from_file_location(f"minigrad_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # Numba looks a cached kernel's globals up by this name
        spec.loader.exec_module(module)
        _modules[text] = module
    return _modules[text]


def compiled(
    fn: Callable[..., Any], reads: Sequence[str], takes_g: bool, dtypes: Sequence[Any]
) -> tuple[Any, Any]:
    """The kernels `accumulate` and `reduce` of a rule, compiled once for g's and its reads' dtypes.

    One signature takes every layout, and read-only arrays too. Raises NoKernel.
    """
    from numba import from_dtype, types, void
    from numba.core.errors import NumbaError

    text = kernel_source(fn, reads, takes_g)
    with _compiling:
        key = text, ",".join(map(str, dtypes))
        if reason := _refused.get(key):
            raise NoKernel(reason)
        module = _load(text)
        operands = [types.Array(from_dtype(d), _AXES, "A", readonly=True) for d in dtypes]
        written = types.Array(from_dtype(dtypes[0]), _AXES, "A")
        sums = types.Array(types.float64, _AXES, "A")
        known = [list(s.args[:-1]) for s in module.accumulate.nopython_signatures]
        if operands not in known:
            try:
                module.accumulate.compile(void(*operands, written))
                module.reduce.compile(void(*operands, sums, sums))
            except NumbaError as problem:
                reason = f"Numba does not compile it: {str(problem).splitlines()[0]}"
                _refused[key] = reason
                raise NoKernel(reason) from problem
        return module.accumulate, module.reduce


# --- running it -----------------------------------------------------------------------------------


def _merged(arrays: list[Array], shape: tuple[int, ...]) -> list[Array] | None:
    """The arrays on at most three axes: neighbours merge where every array allows it."""
    sizes: list[int] = []
    strides: list[list[int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        here = [a.strides[axis] for a in arrays]
        if sizes and all(s == h * size for s, h in zip(strides[-1], here, strict=True)):
            sizes[-1] *= size
            strides[-1] = here
        else:
            sizes.append(size)
            strides.append(here)
    if len(sizes) > _AXES:
        return None
    pad = _AXES - len(sizes)
    grid = (1,) * pad + tuple(sizes)
    return [
        as_strided(a, grid, (0,) * pad + tuple(s[n] for s in strides), writeable=a.flags.writeable)
        for n, a in enumerate(arrays)
    ]


def _spread(array: Array, shape: tuple[int, ...]) -> Array:
    """A writable view in `shape`; broadcast axes have stride 0, so writing there adds up."""
    lead = (1,) * (len(shape) - array.ndim) + array.shape
    full = array.reshape(lead)
    strides = [0 if n == 1 else s for n, s in zip(lead, full.strides, strict=True)]
    return as_strided(full, shape, strides)


def fused(
    fn: Callable[..., Any],
    reads: Sequence[str],
    takes_g: bool,
    g: Array,
    values: Sequence[Any],
    shape: tuple[int, ...],
) -> Callable[[Array], None] | None:
    """A call that adds a rule's contribution, reduced to `shape`, into an array; or None.

    g: the upstream gradient, float32 or float64, of the result's shape. values: what the rule
    reads, arrays of g's dtype, masks or numbers, each broadcasting to g's shape. The array to add
    into is C-contiguous, of `shape` and g's dtype.
    """
    if g.size < LARGE or os.environ.get("MINIGRAD_JIT") == "0" or g.dtype not in ("f4", "f8"):
        return None
    if not all(isinstance(v, (np.ndarray, numbers.Real)) for v in values):
        return None
    arrays = [g, *(v if isinstance(v, np.ndarray) else np.asarray(v, g.dtype) for v in values)]
    if any(a.dtype not in (g.dtype, np.bool_) for a in arrays):
        return None
    operands = [np.broadcast_to(a, g.shape) for a in arrays]
    try:
        accumulate, reduce = compiled(fn, reads, takes_g, [a.dtype for a in arrays])
    except NoKernel:
        return None

    if shape == g.shape:
        if _merged([*operands, np.empty(shape, g.dtype)], g.shape) is None:
            return None

        def add(into: Array) -> None:
            accumulate(*(_merged([*operands, into], g.shape) or ()))

        return add

    sums = [np.zeros(shape), np.zeros(shape)]  # total, and the rounding it lost
    work = _merged([*operands, *(_spread(s, g.shape) for s in sums)], g.shape)
    if work is None:
        return None

    def add_sums(into: Array) -> None:
        reduce(*work)
        total, lost = sums  # what an infinity "lost" is NaN, and no correction
        into += np.where(np.isfinite(lost), total + lost, total).astype(into.dtype)

    return add_sums


def why_not(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> str | None:
    """Why a rule has no kernel, in a few words; None if it has one. Compiles it."""
    try:
        compiled(fn, reads, takes_g, [np.dtype(np.float64)] * (1 + len(reads)))
    except NoKernel as reason:
        return str(reason)
    return None
