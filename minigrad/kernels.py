"""The only file that knows Numba: it turns the rule of an elementwise op into one fused loop.

A rule is written once, with operators and NumPy functions that work on an array and on a scalar
alike. Small arrays run it in NumPy. For large ones its source becomes a loop that reads upstream
gradient and saved values once and does slope × upstream × broadcast reduction × accumulation on the
way, without temporaries. The loop is generated into a real file named after its own text, so Numba
keeps the machine code on disk and an edited rule is never served an old kernel. Sums are
compensated (Neumaier 1974), so a million rows lose nothing against NumPy.

`MINIGRAD_JIT=0` switches it off; whatever cannot be compiled runs in NumPy, and `why_not` says why.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from .paths import kernel_folder

Array = NDArray[Any]
LARGE = (
    65_536  # cells from which a compiled loop beats NumPy's temporaries (benchmarks/crossover.py)
)
_AXES = 3  # adjacent axes are merged first; what still has more runs in NumPy


def select(condition: Any, chosen: Any, other: Any) -> Any:
    """`chosen` where the condition holds, else `other`: for arrays, and for scalars inside a
    kernel.
    """
    return np.where(condition, chosen, other)


# --- from a rule to its source --------------------------------------------------------------------


class NoKernel(Exception):
    """Why a rule stays in NumPy; caught in `_module`, told by `why_not`."""


def rule_source(fn: Callable[..., Any]) -> str:
    """The rule as one expression, `1 - y * y`, read from its file. Raises NoKernel if there is none
    to read.
    """
    code: CodeType = fn.__code__
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(code) or fn))
    except (OSError, TypeError, SyntaxError) as problem:
        raise NoKernel("its source cannot be read") from problem
    lines = [p[:4] for p in code.co_positions() if None not in p[:4] and p[2] is not None]
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body: ast.expr = node.body
        elif isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            statement = node.body[-1]
            if node.lineno != code.co_firstlineno or not isinstance(statement, ast.Return):
                continue
            if len(node.body) > 1 or statement.value is None:
                raise NoKernel("it is more than one expression")
            body = statement.value
        else:
            continue
        span = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
        if span in lines:
            return ast.unparse(body)
    raise NoKernel("its source cannot be found in its file")


def _constants(fn: Callable[..., Any], expression: str) -> str:
    """Assignments for the plain numbers the expression takes from its module; NoKernel for anything
    else.
    """
    names = {n.id for n in ast.walk(ast.parse(expression)) if isinstance(n, ast.Name)}
    outer = {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}
    rows = []
    for name in sorted(names - set(fn.__code__.co_varnames) - {"np", "select"}):
        if not isinstance(outer.get(name), (int, float)):
            raise NoKernel(f"it uses {name}, which is no number")
        rows.append(f"{name} = {outer[name]!r}\n")
    return "".join(rows)


_TEMPLATE = '''"""Made by minigrad from one backward rule: {expression}"""

import numpy as np
from numba import njit

{constants}

@njit
def select(condition, chosen, other):
    return chosen if condition else other


@njit(error_model="numpy", nogil=True, cache=True)
def accumulate({arrays}, out):
    """out += the contribution of every cell."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
{loads}
                out[i, j, k] += {term}


@njit(error_model="numpy", nogil=True, cache=True)
def reduce({arrays}, total, lost):
    """total + lost = the sum over what broadcasting copied: there `total` has stride 0."""
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            for k in range(total.shape[2]):
{loads}
                term = np.float64({term})
                before = total[i, j, k]
                after = before + term
                if abs(before) >= abs(term):
                    lost[i, j, k] += (before - after) + term
                else:
                    lost[i, j, k] += (term - after) + before
                total[i, j, k] = after
'''

_modules: dict[CodeType, ModuleType | str] = {}  # rule -> its kernel, or why there is none
_compiling = threading.Lock()


def kernel_source(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> str:
    """The text of the kernel generated for a rule. Raises NoKernel."""
    expression = rule_source(fn)
    names = ["g", *reads]
    return _TEMPLATE.format(
        expression=expression,
        constants=_constants(fn, expression),
        arrays=", ".join(f"{name}_" for name in names),
        loads="\n".join(f"{' ' * 16}{name} = {name}_[i, j, k]" for name in names),
        term=expression if takes_g else f"g * ({expression})",
    )


def _module(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> ModuleType | str:
    code = fn.__code__
    with _compiling:
        if code not in _modules:
            try:
                _modules[code] = _load(kernel_source(fn, reads, takes_g))
            except NoKernel as reason:
                _modules[code] = str(reason)
        return _modules[code]


def _load(text: str) -> ModuleType:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = kernel_folder() / f"kernel_{digest}.py"
    if not path.exists():
        draft = Path(f"{path}.{os.getpid()}")
        draft.write_text(text)
        draft.replace(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- running it -----------------------------------------------------------------------------------


def _merged(arrays: list[Array], shape: tuple[int, ...]) -> list[Array] | None:
    """The arrays, broadcast to `shape`, on at most three axes: neighbours merge where every array
    allows it.
    """
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
    """A writable view of `array` in `shape`; broadcast axes have stride 0, so writing there adds
    up.
    """
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
    """A call that adds an elementwise rule's contribution, reduced to `shape`, into an array; None:
    use NumPy.

    g: the upstream gradient, float32 or float64, of the result's shape. values: what the rule
    reads, arrays of g's dtype or numbers, each broadcasting to g's shape. The array to add into is
    C-contiguous, of `shape` and g's dtype.
    """
    if g.size < LARGE or os.environ.get("MINIGRAD_JIT") == "0" or g.dtype not in ("f4", "f8"):
        return None
    operands = [g, *(v if isinstance(v, np.ndarray) else np.asarray(v, g.dtype) for v in values)]
    module = _module(fn, reads, takes_g)
    if any(a.dtype != g.dtype for a in operands) or isinstance(module, str):
        return None
    operands = [np.broadcast_to(a, g.shape) for a in operands]

    if shape == g.shape:
        if _merged([*operands, np.empty(shape, g.dtype)], g.shape) is None:
            return None

        def accumulate(into: Array) -> None:
            work = _merged([*operands, into], g.shape)
            assert work is not None
            _compiled(module.accumulate, work, 1)(*work)

        return accumulate

    sums = [np.zeros(shape), np.zeros(shape)]  # total, and the rounding it lost
    work = _merged([*operands, *(_spread(s, g.shape) for s in sums)], g.shape)
    if work is None:
        return None

    def reduce(into: Array) -> None:
        _compiled(module.reduce, work, 2)(*work)
        into += (sums[0] + sums[1]).astype(into.dtype)

    return reduce


def _compiled(function: Any, arrays: list[Array], written: int) -> Any:
    """Compile once per dtype: one signature takes every layout, and read-only arrays too."""
    from numba import from_dtype, types, void

    with _compiling:
        if not function.nopython_signatures or all(
            s.args[0].dtype != from_dtype(arrays[0].dtype) for s in function.nopython_signatures
        ):
            kinds = [
                types.Array(from_dtype(a.dtype), _AXES, "A", readonly=n < len(arrays) - written)
                for n, a in enumerate(arrays)
            ]
            function.compile(void(*kinds))
    return function


def why_not(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> str | None:
    """Why a rule has no kernel, in a few words; None if it has one."""
    try:
        kernel_source(fn, reads, takes_g)
    except NoKernel as reason:
        return str(reason)
    return None
