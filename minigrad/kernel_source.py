"""From a backward rule to the text of its kernel: the rule's own source, put into a loop.

A rule is one expression, so its text can be read from its file; numbers it takes from around it are
written into the kernel as they are at the moment, so a kernel is never older than its rule.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

_BUILT_IN = {"np", "select", "erf", "erfc", "logistic"}  # what every kernel can call


class NoKernel(Exception):
    """Why a rule stays in NumPy; caught in `fused`, told by `why_not`."""


def rule_source(fn: Callable[..., Any]) -> str:
    """The rule as one expression, `1 - y * y`, read from its file. Raises NoKernel."""
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
    """Assignments for the numbers the expression takes from around it. Raises NoKernel."""
    names = {n.id for n in ast.walk(ast.parse(expression)) if isinstance(n, ast.Name)}
    outer = {**fn.__globals__, **inspect.getclosurevars(fn).nonlocals}
    rows = []
    for name in sorted(names - set(fn.__code__.co_varnames) - _BUILT_IN):
        if not isinstance(outer.get(name), (int, float)):
            raise NoKernel(f"it uses {name}, which is no number")
        rows.append(f'{name} = float("{float(outer[name])!r}")\n')
    return "".join(rows)


_TEMPLATE = '''"""Made by minigrad from one backward rule: {expression}"""

from math import erf, erfc

import numpy as np
from numba import njit

{constants}

@njit
def select(condition, chosen, other):
    return chosen if condition else other


@njit
def logistic(x):
    small = np.exp(-abs(x))
    return (1 if x >= 0 else small) / (1 + small)


@njit(error_model="numpy", nogil=True, cache=True)
def accumulate({arrays}, _out):
    """_out += the contribution of every cell."""
    for _i in range(_out.shape[0]):
        for _j in range(_out.shape[1]):
            for _k in range(_out.shape[2]):
{loads}
                _out[_i, _j, _k] += {term}


@njit(error_model="numpy", nogil=True, cache=True)
def reduce({arrays}, _total, _lost):
    """_total + _lost = the sum over what broadcasting copied: there `_total` has stride 0."""
    for _i in range(_total.shape[0]):
        for _j in range(_total.shape[1]):
            for _k in range(_total.shape[2]):
{loads}
                _term = np.float64({term})
                _before = _total[_i, _j, _k]
                _after = _before + _term
                _added = _after - _before
                _lost[_i, _j, _k] += (_before - (_after - _added)) + (_term - _added)
                _total[_i, _j, _k] = _after
'''

_expressions: dict[CodeType, str | NoKernel] = {}  # a rule's text never changes, its numbers may


def kernel_source(fn: Callable[..., Any], reads: Sequence[str], takes_g: bool) -> str:
    """The text of the kernel generated for a rule. Raises NoKernel."""
    code = getattr(fn, "__code__", None)
    if code is None:
        raise NoKernel("it is no plain function")
    if code not in _expressions:
        try:
            _expressions[code] = rule_source(fn)
        except NoKernel as reason:
            _expressions[code] = reason
    expression = _expressions[code]
    if isinstance(expression, NoKernel):
        raise expression
    if any(name.startswith("_") for name in reads):
        raise NoKernel("names that begin with _ are the kernel's own")
    names = ["g", *reads]
    return _TEMPLATE.format(
        expression=expression,
        constants=_constants(fn, expression),
        arrays=", ".join(f"{name}_" for name in names),
        loads="\n".join(f"{' ' * 16}{name} = {name}_[_i, _j, _k]" for name in names),
        term=expression if takes_g else f"g * ({expression})",
    )
