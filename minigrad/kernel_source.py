"""From a backward rule to the text of its kernel: the rule's own source, put into a loop.

A rule is one expression, so its text can be read from its file; numbers it takes from around it are
written into the kernel as they are at the moment, so a kernel is never older than its rule.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any

_OURS = {"exp", "maximum", "minimum"}  # of NumPy's, those that the kernels bring along themselves
_FUNCTIONS = {"select", "erf", "erfc", "logistic"} | _OURS  # what every kernel can call


class NoKernel(Exception):
    """Why a rule stays in NumPy; caught in `fused`, told by `why_not`."""


def rule_source(fn: Callable[..., Any]) -> str:
    """A function as one expression, `1 - y * y`, read from its file. Raises NoKernel."""
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
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first != code.co_firstlineno or not isinstance(statement, ast.Return):
                continue
            if len(node.body) > 1 + _has_docstring(node) or statement.value is None:
                raise NoKernel("it is more than one expression")
            body = statement.value
        else:
            continue
        span = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
        if span in lines:
            return ast.unparse(body)
    raise NoKernel("its source cannot be found in its file")


def _has_docstring(node: ast.FunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None


class _OwnFunctions(ast.NodeTransformer):
    """`np.exp` becomes the `exp` of the kernel: a loop can take it for several cells at a time."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        numpy = isinstance(node.value, ast.Name) and node.value.id == "np"
        return ast.Name(node.attr, ast.Load()) if numpy and node.attr in _OURS else node


def _once(expression: str) -> tuple[str, str]:
    """Calls that are written twice are made once: (`_c0 = logistic(x)`, the expression with it)."""
    calls = [ast.unparse(n) for n in ast.walk(ast.parse(expression)) if isinstance(n, ast.Call)]
    rows: list[str] = []
    for call in sorted({c for c in calls if calls.count(c) > 1}, key=len):
        name = f"_c{len(rows)}"
        expression = expression.replace(call, name)
        rows.append(f"{name} = {call}")
    return "; ".join(rows), expression


def _constants(fn: Callable[..., Any], expression: str) -> str:
    """Assignments for the numbers the expression takes from around it. Raises NoKernel."""
    names = {n.id for n in ast.walk(ast.parse(expression)) if isinstance(n, ast.Name)}
    outer = {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}
    rows = []
    for name in sorted(names - set(fn.__code__.co_varnames) - _FUNCTIONS - {"np"}):
        value = outer.get(name)
        if callable(value) and value.__module__ == f"{__package__}.kernels":  # by another name
            rows.append(f"{name} = {value.__name__}\n")
        elif isinstance(value, (int, float)):
            rows.append(f'{name} = float("{float(value)!r}")\n')
        else:
            raise NoKernel(f"it uses {name}, which is no number")
    return "".join(rows)


_MATHS = '''"""Made by minigrad from one expression: {expression}"""

from math import erf, erfc

import numpy as np
from numba import njit


@njit
def select(condition, chosen, other):
    return chosen if condition else other


@njit
def exp(x):
    """2^k · e^r with |r| <= ln 2 / 2: no branch, so that a loop takes several cells at a time.

    k comes out of the low bits of x / ln 2 + 1.5 · 2^52; e^r is its Taylor series, whose first left
    out term is below 4e-18. At most 1 unit in the last place off (ln 2 in two parts: Cody 1980).
    """
    x = np.float64(x)
    near = min(max(x, -746.0), 710.0)
    shifted = near * 1.4426950408889634 + 6755399441055744.0
    k = shifted - 6755399441055744.0
    r = (near - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    p = {taylor}
    p = 1.0 + (r + r * r * p)
    n = np.float64(shifted).view(np.int64) - np.int64(4843621399236968448)
    half = n >> 1  # two factors, so that neither overflows where the result does not
    low = np.int64((half + 1023) << 52).view(np.float64)
    high = np.int64((n - half + 1023) << 52).view(np.float64)
    return p * low * high if x == x else x


@njit
def minimum(a, b):
    return (a if a < b else b) if a == a else a  # NaN stays NaN


@njit
def maximum(a, b):
    return (a if a > b else b) if a == a else a


@njit
def logistic(x):
    small = exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)


{constants}
'''

# 1/2 + r (1/6 + r (1/24 + …)), up to r^13 / 13!
_TAYLOR = (
    "(" * 11
    + "1 / 6227020800"
    + "".join(f" * r + 1 / {math.factorial(n)})" for n in range(12, 1, -1))
)

_RULE = '''
@njit(error_model="numpy", nogil=True, cache=True)
def flat({arrays}, _out):
    """_out += the contribution of every cell, one after the other in memory."""
    for _i in range(_out.shape[0]):
        {cells}
        {once}
        _out[_i] += {term}


@njit(error_model="numpy", nogil=True, cache=True)
def accumulate({arrays}, _out):
    """_out += the contribution of every cell."""
    for _i in range(_out.shape[0]):
        for _j in range(_out.shape[1]):
            for _k in range(_out.shape[2]):
                {loads}
                {once}
                _out[_i, _j, _k] += {term}


@njit(error_model="numpy", nogil=True, cache=True)
def reduce({arrays}, _total, _lost):
    """_total + _lost = the sum over what broadcasting copied: there `_total` has stride 0."""
    for _i in range(_total.shape[0]):
        for _j in range(_total.shape[1]):
            for _k in range(_total.shape[2]):
                {loads}
                {once}
                _term = np.float64({term})
                _before = _total[_i, _j, _k]
                _after = _before + _term
                _added = _after - _before
                _lost[_i, _j, _k] += (_before - (_after - _added)) + (_term - _added)
                _total[_i, _j, _k] = _after
'''

_FORWARD = '''
@njit(error_model="numpy", nogil=True, cache=True)
def flat({arrays}, _out):
    """_out = the value of every cell, one after the other in memory."""
    for _i in range(_out.shape[0]):
        {cells}
        {once}
        _out[_i] = {term}
'''

_expressions: dict[CodeType, str | NoKernel] = {}  # a text never changes, its numbers may


def _expression(fn: Callable[..., Any]) -> str:
    code = getattr(fn, "__code__", None)
    if code is None:
        raise NoKernel("it is no plain function")
    if code not in _expressions:
        try:
            tree = _OwnFunctions().visit(ast.parse(rule_source(fn), mode="eval"))
            _expressions[code] = ast.unparse(tree)
        except NoKernel as reason:
            _expressions[code] = reason
    found = _expressions[code]
    if isinstance(found, NoKernel):
        raise found
    return found


_texts: dict[Any, str] = {}  # by all that a text depends on


def _text(template: str, fn: Callable[..., Any], names: Sequence[str], term: str) -> str:
    key = template, getattr(fn, "__code__", fn), tuple(names), term, _numbers(fn)
    if key not in _texts:
        _texts[key] = _written(template, fn, names, term)
    return _texts[key]


def _numbers(fn: Callable[..., Any]) -> tuple[tuple[str, float], ...]:
    """The numbers around a function as they are now: when one changes, so does the text."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return ()
    around = {name: fn.__globals__.get(name) for name in code.co_names}
    for name, cell in zip(code.co_freevars, fn.__closure__ or (), strict=True):
        with suppress(ValueError):  # not set yet
            around[name] = cell.cell_contents
    return tuple((n, v) for n, v in around.items() if isinstance(v, (int, float)))


def _written(template: str, fn: Callable[..., Any], names: Sequence[str], term: str) -> str:
    if any(name.startswith("_") for name in names):
        raise NoKernel("names that begin with _ are the kernel's own")
    expression = _expression(fn)
    maths = _MATHS.format(
        expression=expression, constants=_constants(fn, expression), taylor=_TAYLOR
    )
    once, rest = _once(expression)
    return maths + template.format(
        arrays=", ".join(f"{name}_" for name in names),
        cells="; ".join(f"{name} = {name}_[_i]" for name in names),
        loads="; ".join(f"{name} = {name}_[_i, _j, _k]" for name in names),
        once=once or "pass",
        term=term.format(rest),
    )


def kernel_source(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> str:
    """The text of the kernels generated for a rule. Raises NoKernel."""
    return _text(_RULE, fn, ["g", *reads], "{}" if takes_g else "g * ({})")


def forward_source(fn: Callable[..., Any], names: Sequence[str]) -> str:
    """The text of the kernel generated for an elementwise forward. Raises NoKernel.

    One ufunc alone is as fast in NumPy, so it gets no kernel.
    """
    steps = [n for n in ast.walk(ast.parse(_expression(fn))) if isinstance(n, _STEPS)]
    ours = any(isinstance(n, ast.Call) and getattr(n.func, "id", "") in _FUNCTIONS for n in steps)
    if len(steps) < 2 and not ours:
        raise NoKernel("it is one step, which NumPy does as fast")
    return _text(_FORWARD, fn, names, "{}")


_STEPS = (ast.BinOp, ast.Call, ast.Compare, ast.UnaryOp)
