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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from .kernel_source import NoKernel, forward_source, kernel_source
from .paths import kernel_folder

Array = NDArray[Any]
LARGE = 2**20  # cells from which a loop beats NumPy; measured by benchmarks/crossover.py
FLAT = 2**16  # the same where all arrays are contiguous and of one shape
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
_ready: dict[tuple[str, str, str], Any] = {}  # (text, kernel, dtypes) -> it, or why it is refused
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


def compiled(text: str, name: str, dtypes: Sequence[Any]) -> Any:
    """One kernel of a generated text, compiled once for the dtypes of what it reads.

    `flat` takes contiguous arrays; one signature of `accumulate` and `reduce` takes every layout,
    and read-only arrays too. Raises NoKernel.
    """
    key = text, name, ",".join(map(str, dtypes))
    with _compiling:
        if key not in _ready:
            _ready[key] = _compile(getattr(_load(text), name), name == "flat", dtypes)
        found = _ready[key]
    if isinstance(found, NoKernel):
        raise found
    return found


def _compile(kernel: Any, flat: bool, dtypes: Sequence[Any]) -> Any:
    from numba import from_dtype, types, void
    from numba.core.errors import NumbaError

    axes, layout = (1, "C") if flat else (_AXES, "A")
    array: Any = types.Array
    operands = [array(from_dtype(d), axes, layout, readonly=True) for d in dtypes]
    written = [array(from_dtype(dtypes[0]), axes, layout)]
    if kernel.__name__ == "reduce":
        written = [array(types.float64, axes, layout)] * 2
    try:
        kernel.disable_compile(False)
        kernel.compile(void(*operands, *written))
        kernel.disable_compile()  # this signature takes every layout: no other is compiled
    except NumbaError as problem:
        return NoKernel(f"Numba does not compile it: {str(problem).splitlines()[0]}")
    return kernel


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


def small(size: int) -> bool:
    """Whether no loop pays for arrays of so many cells, or loops are switched off."""
    return size < min(FLAT, LARGE) or os.environ.get("MINIGRAD_JIT") == "0"


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
    if small(g.size) or g.dtype not in ("f4", "f8"):
        return None
    if not all(isinstance(v, (np.ndarray, numbers.Real)) for v in values):
        return None
    arrays = [g, *(v if isinstance(v, np.ndarray) else np.asarray(v, g.dtype) for v in values)]
    if any(a.dtype not in (g.dtype, np.bool_) for a in arrays):
        return None
    dtypes = [a.dtype for a in arrays]
    try:
        text = kernel_source(fn, reads, takes_g)
        if all(a.shape == shape and a.flags.c_contiguous for a in arrays):
            flat = compiled(text, "flat", dtypes)
            return partial(_in_chunks, flat, [a.reshape(-1) for a in arrays])
        if g.size < LARGE:
            return None
        if shape != g.shape:
            return _reducing(compiled(text, "reduce", dtypes), arrays, shape)
        return _adding(compiled(text, "accumulate", dtypes), arrays)
    except NoKernel:
        return None


def _adding(accumulate: Any, arrays: list[Array]) -> Callable[[Array], None] | None:
    shape = arrays[0].shape
    operands = [np.broadcast_to(a, shape) for a in arrays]
    if _merged([*operands, np.empty(shape, arrays[0].dtype)], shape) is None:
        return None

    def add(into: Array) -> None:
        accumulate(*(_merged([*operands, into], shape) or ()))

    return add


def _reducing(
    reduce: Any, arrays: list[Array], shape: tuple[int, ...]
) -> Callable[[Array], None] | None:
    whole = arrays[0].shape
    sums = [np.zeros(shape), np.zeros(shape)]  # total, and the rounding it lost
    spread = [_spread(s, whole) for s in sums]
    work = _merged([*(np.broadcast_to(a, whole) for a in arrays), *spread], whole)
    if work is None:
        return None

    def add_sums(into: Array) -> None:
        reduce(*work)
        total, lost = sums  # what an infinity "lost" is NaN, and no correction
        into += np.where(np.isfinite(lost), total + lost, total).astype(into.dtype)

    return add_sums


def forward(fn: Callable[..., Any], names: Sequence[str], values: Sequence[Any]) -> Array | None:
    """The value of a large elementwise op in one pass, without temporaries; or None.

    fn: the op's forward, one expression. values: contiguous arrays of one shape and dtype, float32
    or float64.
    """
    first = values[0]
    if not isinstance(first, np.ndarray) or small(first.size) or first.dtype not in ("f4", "f8"):
        return None
    for v in values:
        alike = isinstance(v, np.ndarray) and v.shape == first.shape and v.dtype == first.dtype
        if not (alike and v.flags.c_contiguous):
            return None
    try:
        flat = compiled(forward_source(fn, names), "flat", [first.dtype] * len(values))
    except NoKernel:
        return None
    y = np.empty(first.shape, first.dtype)
    _in_chunks(flat, [v.reshape(-1) for v in values], y)
    return y


# --- threads --------------------------------------------------------------------------------------

THREADS = max(1, min(2, os.cpu_count() or 1, int(os.environ.get("MINIGRAD_THREADS") or 2)))
CHUNK = 2**16  # cells: so large that waking a thread pays, so small that caches hold it

_pool: ThreadPoolExecutor | None = None


def _in_chunks(kernel: Any, arrays: list[Array], into: Array) -> None:
    """Run a flat kernel, which releases the lock of Python, over chunks of the arrays.

    Every cell is worked out on its own, so the bits do not depend on the number of threads.
    """
    global _pool
    out = into.reshape(-1)
    if THREADS < 2 or out.size < 2 * CHUNK:
        kernel(*arrays, out)
        return
    with _compiling:
        _pool = _pool or ThreadPoolExecutor(THREADS, "minigrad")
    half = out.size // THREADS // CHUNK * CHUNK or CHUNK
    cuts = [*(n * half for n in range(THREADS)), out.size]
    parts = [slice(a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
    work = [(*(a[p] for a in arrays), out[p]) for p in parts[1:]]
    waiting = [_pool.submit(partial(kernel, *given)) for given in work]
    kernel(*(a[parts[0]] for a in arrays), out[parts[0]])
    for part in waiting:
        part.result()


def why_not(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> str | None:
    """Why a rule has no kernel, in a few words; None if it has one. Compiles it."""
    try:
        text = kernel_source(fn, reads, takes_g)
        compiled(text, "accumulate", [np.dtype(np.float64)] * (1 + len(reads)))
    except NoKernel as reason:
        return str(reason)
    return None
