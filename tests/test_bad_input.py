"""Bad input is refused in one sentence that names op, shapes and rule, and leaves no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refused import IMAGE, KERNEL, Call, V, X, refused

import minigrad as mg

# --- axes -----------------------------------------------------------------------------------------

SEVERAL = {  # dim may be a tuple
    **{
        name: lambda x, d, name=name: getattr(x, name)(dim=d)
        for name in ("sum", "mean", "prod", "max", "min", "var", "std", "norm", "logsumexp")
    },
    "squeeze": lambda x, d: x.squeeze(d),
    "flip": lambda x, d: x.flip(d),
    "permute": lambda x, d: x.permute(d),
}
SINGLE = {
    **{
        name: lambda x, d, name=name: getattr(x, name)(d)
        for name in ("softmax", "log_softmax", "cumsum", "cumprod")
    },
    "transpose": lambda x, d: x.transpose(0, d),
    "narrow": lambda x, d: x.narrow(d, 0, 1),
    "cat": lambda x, d: mg.cat([x, x], d),
    "index_select": lambda x, d: x.index_select(d, [0]),
    "gather": lambda x, d: x.gather(d, [[0, 0, 0]]),
    "index_add": lambda x, d: x.index_add(d, [0], np.ones((1, 3))),
    "scatter_add": lambda x, d: x.scatter_add(d, [[0]], np.ones((1, 1))),
    "split": lambda x, d: x.split(1, d),
}
NEW = {"unsqueeze": lambda x, d: x.unsqueeze(d), "stack": lambda x, d: mg.stack([x, x], d)}


def test_another_sentence_another_kind_or_none_would_be_noticed() -> None:
    wrong = "sum: dim 5 is no axis of x (2, 3), whose axes are 0 … 1"
    for call in (lambda x: x.sum(6), lambda x: x.mean(5), lambda x: x.index_select(0, [5])):
        with pytest.raises((AssertionError, IndexError)):
            refused(call, mg.ShapeError, wrong)
    with pytest.raises(pytest.fail.Exception):
        refused(lambda x: x.sum(0), mg.ShapeError, wrong)


def test_every_op_that_takes_an_axis_is_here() -> None:
    takes = {
        name for name, card in mg.registry.items() if {"dim", "dims", "dim0"} & card.params.keys()
    }
    assert takes | {"split"} == SEVERAL.keys() | SINGLE.keys() | NEW.keys()


@pytest.mark.parametrize("dim", [5, -7, "a", True, 1.0], ids=repr)
@pytest.mark.parametrize("name", [*SEVERAL, *SINGLE])
def test_an_axis_that_is_not_there(name: str, dim: Any) -> None:
    rule = f"dim {dim!r} is no axis of x (2, 3), whose axes are 0 … 1"
    refused(lambda x: {**SEVERAL, **SINGLE}[name](x, dim), mg.ShapeError, f"{name}: {rule}")


@pytest.mark.parametrize("name", SEVERAL)
def test_an_axis_named_twice(name: str) -> None:
    for dim in ((0, 0), (1, -1)):
        sentence = f"{name}: dim {dim} names an axis of x (2, 3) twice"
        refused(lambda x, dim=dim: SEVERAL[name](x, dim), mg.ShapeError, sentence)


@pytest.mark.parametrize("dim", [(0, 0), (0, 1), (0,)], ids=repr)
@pytest.mark.parametrize("name", SINGLE)
def test_several_axes_where_one_is_meant(name: str, dim: tuple[int, ...]) -> None:
    sentence = f"{name}: dim {dim} is no single axis of x (2, 3)"
    refused(lambda x: SINGLE[name](x, dim), mg.ShapeError, sentence)


@pytest.mark.parametrize("dim", [5, -7, (0, 0), "a", True], ids=repr)
@pytest.mark.parametrize("name", NEW)
def test_no_place_for_a_new_axis(name: str, dim: Any) -> None:
    rule = f"dim {dim!r} is no place for a new axis in x (2, 3); there are -3 … 2"
    refused(lambda x: NEW[name](x, dim), mg.ShapeError, f"{name}: {rule}")


def test_a_scalar_has_no_axis() -> None:
    rule = "dim 0 is no axis of x (), whose axes are none, it is a scalar"
    refused(lambda x: x.sum().sum(0), mg.ShapeError, f"sum: {rule}")
    refused(lambda x: x.sum().softmax(0), mg.ShapeError, f"softmax: {rule}")
    for name in ("rms_norm", "layer_norm"):
        sentence = f"{name}: x () must have an axis to normalise over"
        refused(lambda x, name=name: getattr(x.sum(), name)(), mg.ShapeError, sentence)
    sentence = "cross_entropy: x () must have an axis of classes"
    refused(lambda x: mg.cross_entropy(x.sum(), 0), mg.ShapeError, sentence)


# --- shapes that do not meet ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "hypot"])
def test_shapes_that_do_not_broadcast(name: str) -> None:
    first, second = mg.registry[name].inputs
    rule = "do not meet: at axis -1 the sizes 3 and 4 differ, and neither is 1"
    sentence = f"{name}: {first} (2, 3) and {second} (2, 4) {rule}"
    refused(lambda x: getattr(mg, name)(x, np.ones((2, 4))), mg.ShapeError, sentence)
    sentence = f"{name}: {first} (4,) and {second} (2, 3) {rule}"
    refused(lambda x: getattr(mg, name)(np.ones(4), x), mg.ShapeError, sentence)


SHAPES = [
    (
        lambda x: mg.where(X[:, :2] > 1, x, 0.0),
        "where: mask (2, 2) and a (2, 3) and b () do not meet: at axis -1 the sizes 2 and 3 "
        "differ, and neither is 1",
    ),
    (
        lambda x: x @ x,
        "matmul: a (2, 3) and b (2, 3) do not meet: a's last size 3 must equal b's second-last "
        "size 2",
    ),
    (lambda x: x @ 2, "matmul: a (2, 3) and b () must have axes; use * with a scalar"),
    (lambda x: mg.outer(x, V), "outer: a (2, 3) and b (3,) must be vectors"),
    (
        lambda x: mg.cat([x, np.ones((2, 2))]),
        "cat: x0 (2, 3) and x1 (2, 2) must have equal sizes on every axis but dim 0",
    ),
    (
        lambda x: mg.cat([x, V], -1),
        "cat: x0 (2, 3) and x1 (3,) must have equal sizes on every axis but dim -1",
    ),
    (lambda x: mg.stack([x, V]), "stack: x0 (2, 3) and x1 (3,) must have the same shape"),
    (lambda x: mg.mse_loss(x, V), "mse_loss: x (2, 3) and target (3,) must have the same shape"),
    (
        lambda x: x.binary_cross_entropy_with_logits(1.0),
        "binary_cross_entropy_with_logits: x (2, 3) and target () must have the same shape",
    ),
    (
        lambda x: mg.cross_entropy(x, [0, 1, 2]),
        "cross_entropy: x (2, 3) has its classes on axis 1, so target must have shape (2,), not"
        " (3,)",
    ),
    (
        lambda x: mg.nll_loss(x, np.zeros((2, 3), int)),
        "nll_loss: x (2, 3) has its classes on axis 1, so target must have shape (2,), not (2, 3)",
    ),
    (lambda x: x.rms_norm(np.ones(2)), "rms_norm: x (2, 3) must end in the shape of weight (2,)"),
    (
        lambda x: x.layer_norm(np.ones((2, 2, 3))),
        "layer_norm: x (2, 3) must end in the shape of weight (2, 2, 3)",
    ),
    (lambda x: x.layer_norm(V, [1, 2]), "layer_norm: bias (2,) must have the shape of weight (3,)"),
    (lambda x: x.reshape(4), "reshape: x (2, 3) has 6 cells and cannot become (4,)"),
    (lambda x: x.reshape(-1, -1), "reshape: x (2, 3) has 6 cells and cannot become (-1, -1)"),
    (lambda x: x.reshape(2.5), "reshape: 2.5 is no shape; a shape is made of whole numbers"),
    (lambda x: x.broadcast_to(3, 3), "broadcast_to: x (2, 3) does not broadcast to (3, 3)"),
    (lambda x: x.permute((0,)), "permute: dims (0,) must name each of the 2 axes of x (2, 3) once"),
    (
        lambda x: x.repeat(2),
        "repeat: sizes (2,) must count the copies along each of the 2 axes of x (2, 3), and "
        "possibly new ones in front, from 0 on",
    ),
    (
        lambda x: x.pad((1, -1)),
        "pad: pad (1, -1) must be pairs (before, after) of whole numbers from 0 on, last axis "
        "first, for at most the 2 axes of x (2, 3)",
    ),
    (
        lambda x: x.pad((1,)),
        "pad: pad (1,) must be pairs (before, after) of whole numbers from 0 on, last axis "
        "first, for at most the 2 axes of x (2, 3)",
    ),
    (lambda x: x.split([1, 2]), "split: sizes [1, 2] must add up to the size 2 of dim 0"),
    (
        lambda x: x.narrow(0, 0, -1),
        "narrow: start 0 and length -1 must be whole numbers, length from 0 on",
    ),
    (lambda x: mg.embedding([0], V), "embedding: weight (3,) must have the axes (rows, width)"),
    (
        lambda x: x.gather(0, [0, 1]),
        "gather: index (2,) must have as many axes as x (2, 3), and be no larger except along "
        "dim 0",
    ),
    (
        lambda x: x.scatter_add(0, [[0, 0]], np.ones((1, 1))),
        "scatter_add: index (1, 2) must be no larger than src (1, 1)",
    ),
    (
        lambda x: x.index_add(0, [0], V),
        "index_add: source (3,) must have shape (1, 3): x (2, 3) with 1 cells along dim 0",
    ),
    (lambda x: x.index_select(0, [[0]]), "index_select: index (1, 1) must have one axis, or none"),
    (
        lambda x: x[np.array([True, False, True])],
        "getitem: a mask of shape (3,) does not fit the axes of size (2,) that it stands for in"
        " x (2, 3)",
    ),
    (
        lambda x: x[[0, 1], [0, 1, 2]],
        "getitem: index arrays of shapes (2,) and (3,) do not meet in x (2, 3)",
    ),
    (
        lambda x: mg.conv2d(IMAGE, KERNEL[:, :1]),
        "conv2d: x (1, 2, 4, 4) has 2 channels, but weight (3, 1, 2, 2) with groups 1 takes 1",
    ),
    (
        lambda x: mg.conv2d(IMAGE, np.ones((3, 2, 5, 2))),
        "conv2d: the kernel (5, 2) spans 5 cells, but x (1, 2, 4, 4) with padding (0, 0) has 4 "
        "along dim 2",
    ),
    (
        lambda x: x.conv2d(KERNEL),
        "conv2d: x (2, 3) must have the axes (batch, channels, height, width)",
    ),
    (
        lambda x: mg.conv2d(IMAGE, KERNEL, [1, 2]),
        "conv2d: bias (2,) must have one cell per kernel (3,)",
    ),
    (
        lambda x: mg.conv2d(IMAGE, KERNEL, groups=2),
        "conv2d: groups 2 must divide weight's 3 kernels",
    ),
    (
        lambda x: mg.conv2d(IMAGE, KERNEL, stride=0),
        "conv2d: stride 0 must be one or two whole numbers from 1 on",
    ),
    (
        lambda x: mg.max_pool2d(IMAGE, 5),
        "max_pool2d: the kernel (5, 5) spans 5 cells, but x (1, 2, 4, 4) with padding (0, 0) "
        "has 4 along dim 2",
    ),
    (
        lambda x: mg.avg_pool2d(IMAGE, 2, padding=2),
        "avg_pool2d: padding 2 must be at most half of kernel_size",
    ),
    (lambda x: mg.einsum("ijk->i", x), "einsum: 'ijk' in 'ijk->i' does not fit x0 (2, 3)"),
    (
        lambda x: mg.einsum("ij,jk->ik", x, x),
        "einsum: in 'ij,jk->ik' the letter j has the sizes 3 and 2",
    ),
]


@pytest.mark.parametrize("call, sentence", SHAPES, ids=[s for _, s in SHAPES])
def test_shapes_that_break_a_rule(call: Call, sentence: str) -> None:
    refused(call, mg.ShapeError, sentence)
