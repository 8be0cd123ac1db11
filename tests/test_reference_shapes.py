"""The reference table of ops, second half: ops over axes, one case per thing to beware of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rows import case, holds, leaf

import minigrad as mg

INF = math.inf
LN2, LN3 = 0.6931471805599453, 1.0986122886681098

MATMUL = "matmul (2-D, batched, batch-broadcast, 1-D on either side)"
REDUCE = "sum, mean, prod, max, min (dim: None, int, negative, tuple; keepdim)"
MOVE = (
    "broadcast_to, reshape, transpose(d1,d2), permute, squeeze, unsqueeze, narrow(dim,start,len), "
    "slice with step (any sign), cat, copy, cast(dtype)"
)
INDEX = "index_select, gather, index_add, scatter_add"
SOFTMAX = "softmax(dim), log_softmax, logsumexp, cross_entropy"
NORM = "rms_norm(x, weight, eps), layer_norm"

A, V = [[1, 2, 3], [4, 5, 6]], [1, 0, -1]
THIRDS = [0, LN2, LN3]  # softmax is 1/6, 1/3, 1/2
SHARES = [-2 / 9, -1 / 9, 1 / 3]
SIX = [[1, 2, 3], [4, 5, 6]]  # a seed of shape (2, 3)

CASES = [
    # --- matmul -----------------------------------------------------------------------------------
    case(
        MATMUL,
        "2-D",
        lambda a, b: a @ b,
        ([[1, 2], [3, 4]], [[5, 6], [7, 8]]),
        ([[5, 7], [60, 80]], [[1, 30], [2, 40]]),
        [[1, 0], [0, 10]],
    ),
    case(
        MATMUL,
        "batched",
        lambda a, b: a @ b,
        ([[[1, 2]], [[3, 4]]], [[[5], [6]], [[7], [8]]]),
        ([[[5, 6]], [[70, 80]]], [[[1], [2]], [[30], [40]]]),
        [[[1]], [[10]]],
    ),
    case(
        MATMUL,
        "batch-broadcast is reduced",
        lambda a, b: a @ b,
        ([[[1, 2]], [[3, 4]]], [[5], [6]]),
        ([[[5, 6]], [[50, 60]]], [[31], [42]]),
        [[[1]], [[10]]],
    ),
    case(
        MATMUL, "inner product", lambda a, b: a @ b, ([1, 2, 3], [4, 5, 6]), ([4, 5, 6], [1, 2, 3])
    ),
    case(
        MATMUL,
        "matrix-vector",
        lambda a, v: a @ v,
        (A, V),
        ([[1, 0, -1], [10, 0, -10]], [41, 52, 63]),
        [1, 10],
    ),
    case(
        MATMUL,
        "vector-matrix",
        lambda v, m: v @ m,
        ([1, 2], [[1, 0, 2], [3, 1, 0]]),
        ([7, 5], [[1, 2, 3], [2, 4, 6]]),
        [1, 2, 3],
    ),
    # --- reductions -------------------------------------------------------------------------------
    case(REDUCE, "sum of all", mg.sum, (A,), ([[1] * 3] * 2,)),
    case(REDUCE, "sum, int", lambda x: x.sum(0), (A,), ([[1, 2, 4]] * 2,), [1, 2, 4]),
    case(REDUCE, "sum, negative", lambda x: x.sum(-1), (A,), ([[1] * 3, [5] * 3],), [1, 5]),
    case(REDUCE, "sum, tuple", lambda x: x.sum((0, -1)), (A,), ([[7] * 3] * 2,), 7),
    case(
        REDUCE, "mean, keepdim", lambda x: x.mean(1, True), (A,), ([[1] * 3, [2] * 3],), [[3], [6]]
    ),
    case(
        REDUCE, "prod is the product of the OTHERS, not y/x", mg.prod, ([2, 0, 5],), ([0, 10, 0],)
    ),
    case(REDUCE, "prod with two zeros", mg.prod, ([2, 0, 0],), ([0, 0, 0],)),
    case(
        REDUCE,
        "prod, tuple, keepdim",
        lambda x: x.prod((-1, 0), keepdim=True),
        ([[1, 2], [0, 4]],),
        ([[0, 0], [8, 0]],),
        [[1]],
    ),
    case(REDUCE, "tied maxima split evenly", mg.max, ([4, 1, 4, 4],), ([1 / 3, 0, 1 / 3, 1 / 3],)),
    case(
        REDUCE,
        "max, negative, keepdim",
        lambda x: x.max(-1, keepdim=True),
        ([[2, 2], [1, 3]],),
        ([[0.5, 0.5], [0, 10]],),
        [[1], [10]],
    ),
    case(
        REDUCE,
        "tied minima over a tuple",
        lambda x: x.min((0, 1)),
        ([[0, 5], [7, 0]],),
        ([[0.5, 0], [0, 0.5]],),
    ),
    # --- movement ---------------------------------------------------------------------------------
    case(MOVE, "broadcast_to", lambda x: x.broadcast_to(2, 3), ([[1], [2]],), ([[6], [15]],), SIX),
    case(MOVE, "reshape", lambda x: x.reshape(3, -1), (A,), (SIX,), [[1, 2], [3, 4], [5, 6]]),
    case(
        MOVE,
        "transpose(d1,d2)",
        lambda x: x.transpose(-1, 0),
        (A,),
        ([[1, 3, 5], [2, 4, 6]],),
        [[1, 2], [3, 4], [5, 6]],
    ),
    case(
        MOVE,
        "permute, inverse permutation",
        lambda x: x.permute(2, 0, 1),
        ([[[1, 2, 3, 4]]],),
        ([[[1, 10, 100, 1000]]],),
        [[[1]], [[10]], [[100]], [[1000]]],
    ),
    case(MOVE, "squeeze", lambda x: x.squeeze(0), ([[1, 2]],), ([[3, 4]],), [3, 4]),
    case(MOVE, "unsqueeze", lambda x: x.unsqueeze(-1), ([1, 2],), ([3, 4],), [[3], [4]]),
    case(
        MOVE,
        "narrow(dim,start,len)",
        lambda x: x.narrow(1, -2, 1),
        (A,),
        ([[0, 3, 0], [0, 4, 0]],),
        [[3], [4]],
    ),
    case(MOVE, "narrow, an empty piece", lambda x: x.narrow(0, 2, 0), ([1, 2],), ([0, 0],)),
    case(
        MOVE,
        "a step that leaves a remainder",
        lambda x: x[1::3],
        ([0] * 6,),
        ([0, 1, 0, 0, 2, 0],),
        [1, 2],
    ),
    case(
        MOVE,
        "a negative step that leaves a remainder",
        lambda x: x[4:0:-3],
        ([0] * 6,),
        ([0, 2, 0, 0, 1, 0],),
        [1, 2],
    ),
    case(MOVE, "slice, an empty piece", lambda x: x[3:1:2], ([1, 2],), ([0, 0],)),
    case(
        MOVE,
        "cat, with an empty piece and one used twice",
        lambda a, b, c: mg.cat([a, b, c, a]),
        ([1, 2], [], [3]),
        ([1001, 10010], [], [100]),
        [1, 10, 100, 1000, 10000],
    ),
    case(MOVE, "copy", mg.copy, ([1, 2],), ([3, 4],), [3, 4]),
    # --- indexing ---------------------------------------------------------------------------------
    case(
        INDEX,
        "index_select, repeats add, -1 is the last",
        lambda x: x.index_select(0, [2, 0, -1, 2]),
        ([5, 7, 9],),
        ([2, 0, 8],),
        [1, 2, 3, 4],
    ),
    case(
        INDEX,
        "gather, repeats add",
        lambda x: x.gather(0, [2, 0, -1, 2]),
        ([5, 7, 9],),
        ([2, 0, 8],),
        [1, 2, 3, 4],
    ),
    case(
        INDEX,
        "gather, an index smaller than x",
        lambda x: x.gather(1, [[2, 2]]),
        (A,),
        ([[0, 0, 11], [0, 0, 0]],),
        [[1, 10]],
    ),
    case(
        INDEX,
        "index_add, repeats add",
        lambda x, source: x.index_add(0, [1, 1], source),
        ([[0, 0]] * 3, [[1, 2], [3, 4]]),
        ([[1, 2], [3, 4], [5, 6]], [[3, 4], [3, 4]]),
        [[1, 2], [3, 4], [5, 6]],
    ),
    case(
        INDEX,
        "scatter_add, an index smaller than src",
        lambda x, src: x.scatter_add(0, [1, -1], src),
        ([0, 0], [5, 6, 7]),
        ([1, 10], [10, 10, 0]),
        [1, 10],
    ),
    # --- softmax ----------------------------------------------------------------------------------
    case(SOFTMAX, "softmax(dim)", lambda x: x.softmax(-1), (THIRDS,), (SHARES,), [1, 2, 3]),
    case(
        SOFTMAX,
        "log_softmax",
        lambda x: x.log_softmax(0),
        (THIRDS,),
        ([1 / 2, 0, -1 / 2],),
        [1, 1, 1],
    ),
    case(SOFTMAX, "logsumexp", lambda x: x.logsumexp(0), (THIRDS,), ([1 / 6, 1 / 3, 1 / 2],)),
    case(
        SOFTMAX,
        "cross_entropy",
        lambda x: mg.cross_entropy(x, [2, 0]),
        ([THIRDS, THIRDS],),
        ([[1 / 12, 1 / 6, -1 / 4], [-5 / 12, 1 / 6, 1 / 4]],),
    ),
    case(SOFTMAX, "softmax at ±1000", lambda x: x.softmax(0), ([-1000, 1000],), ([0, 0],), [1, 2]),
    case(
        SOFTMAX,
        "log_softmax at ±1000",
        lambda x: x.log_softmax(0),
        ([-1000, 1000],),
        ([1, -1],),
        [1, 2],
    ),
    case(SOFTMAX, "logsumexp at ±1000", lambda x: x.logsumexp(), ([-1000, 1000],), ([0, 1],)),
    case(
        SOFTMAX,
        "cross_entropy at ±1000",
        lambda x: mg.cross_entropy(x, 0),
        ([-1000, 1000],),
        ([-1, 1],),
    ),
    *(
        case(SOFTMAX, f"{name} with a -inf entry", made, ([-INF, 0, 0],), (right,), seed, False)
        for name, made, right, seed in [
            ("softmax", lambda x: x.softmax(0), [0, -0.25, 0.25], [7, 1, 2]),
            ("log_softmax", lambda x: x.log_softmax(0), [0, -0.5, 0.5], [0, 1, 2]),
            ("logsumexp", lambda x: x.logsumexp(0), [0, 0.5, 0.5], 1),
            ("cross_entropy", lambda x: mg.cross_entropy(x, 1), [0, -0.5, 0.5], 1),
        ]
    ),
    # --- norms ------------------------------------------------------------------------------------
    case(
        NORM,
        "rms_norm, the full rule",
        lambda x, w: x.rms_norm(w, eps=1.0),
        ([1, 2, 2], [2, 1, 3]),
        ([11 / 12, -1 / 6, -1 / 6], [0.5, 0, 0]),
        [1, 0, 0],
    ),
    case(
        NORM,
        "layer_norm, the full rule",
        lambda x, w, b: x.layer_norm(w, b, eps=0.0),
        ([-1, 1, 1, -1], [1, 2, 3, 4], [0, 0, 0, 0]),
        ([0.5, 1, -1, -0.5], [-1, 1, 0, 0], [1, 1, 0, 0]),
        [1, 1, 0, 0],
    ),
]


@pytest.mark.parametrize("made, at, expected, seed, smooth", CASES)
def test_row(made, at, expected, seed, smooth) -> None:
    holds(made, at, expected, seed, smooth)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_gradient_of_a_cast_is_cast_back(dtype: str) -> None:
    x = leaf([1, 2], dtype="float32")
    (x.cast(dtype) * 3).sum().backward()
    assert (x.grad.dtype, x.grad.tolist()) == (np.float32, [3, 3]), MOVE


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.index_select(0, [3]),
        lambda x: x.gather(0, [-4]),
        lambda x: x.index_add(0, [3], [1.0]),
        lambda x: x.scatter_add(0, [-4], [1.0]),
    ],
    ids=INDEX.split(", "),
)
def test_an_index_out_of_range_is_an_error_never_junk(call) -> None:
    with pytest.raises(IndexError, match=r"index (3|-4) is out of range for dim 0 of size 3"):
        call(leaf([5, 7, 9]))
