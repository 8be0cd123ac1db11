"""One adapter for each system: a model, written once, becomes a run that can be timed.

A model is `model(ops, *leaves, *constants)` and returns a scalar; `ops` are the system's own
functions, everything else are operators. A run of a step is forward and backward from old leaves to
fresh gradients.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from types import SimpleNamespace as Ops
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad.events import Reached

from .measure import THREADS, Run

Array = np.ndarray
Arrays = Sequence[Array]
Model = Callable[..., Any]
SQRT_2_PI = 0.7978845608028654  # sqrt(2/π)


class Entrant(NamedTuple):
    """What is timed, and the gradients of the leaves that it comes to, in their order."""

    run: Run
    gradients: Callable[[], Sequence[Any]]


def gelu_of(tanh: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The tanh form of gelu, for systems that do not bring it."""
    return lambda x: 0.5 * x * (1 + tanh(SQRT_2_PI * (x + 0.044715 * (x * x * x))))


NUMPY = Ops(sum=np.sum, tanh=np.tanh, gelu=gelu_of(np.tanh))  # only forward, for tests


class System:
    """What a system can be timed at; None for what it has not."""

    name = ""
    package = ""  # as pip calls it
    scalars = False  # it has no arrays

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant | None:
        """Forward and backward."""
        return None

    def gradcheck(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant | None:
        """A numeric check of every element of every leaf."""
        return None

    def backward(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant | None:
        """The backward pass alone, over one graph again and again."""
        return None


class Minigrad(System):
    """Ours. Its backward pass alone is told: every event is taken."""

    name = package = "minigrad"

    def graph(self, model: Model, leaves: Arrays, constants: Arrays) -> tuple[mg.Tensor, list[Any]]:
        given = [mg.tensor(leaf, requires_grad=True) for leaf in leaves]
        return model(mg, *given, *map(mg.tensor, constants)), given

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        given = [mg.tensor(leaf, requires_grad=True) for leaf in leaves]
        fixed = [mg.tensor(constant) for constant in constants]

        def run() -> list[Any]:
            for leaf in given:
                leaf.zero_grad()
            model(mg, *given, *fixed).backward()
            return [leaf.grad for leaf in given]

        return Entrant(run, run)

    def gradcheck(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        given = [mg.tensor(leaf, requires_grad=True) for leaf in leaves]
        fixed = [mg.tensor(constant) for constant in constants]

        def run() -> None:
            assert mg.gradcheck(lambda *moved: model(mg, *moved, *fixed), given)

        return Entrant(run, self.step(model, leaves, constants).gradients)

    def backward(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        loss, _ = self.graph(model, leaves, constants)

        def gradients() -> list[Any]:
            reached = [e for e in mg.walk(loss) if isinstance(e, Reached)]
            return [e.gradient for e in sorted(reached, key=lambda e: e.node)]

        return Entrant(lambda: list(mg.walk(loss)), gradients)


class Silent(Minigrad):
    """Ours again, as the peer of the told walk: the same pass, and nobody listens."""

    name = "plain backward"

    def backward(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        loss, given = self.graph(model, leaves, constants)

        def run() -> list[Any]:
            for leaf in given:
                leaf.zero_grad()
            loss.backward()
            return [leaf.grad for leaf in given]

        return Entrant(run, run)


class Torch(System):
    """PyTorch, eager as people use it."""

    name, package = "PyTorch", "torch"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        self.torch.set_num_threads(THREADS)
        gelu = self.torch.nn.functional.gelu
        tanh, total = self.torch.tanh, self.torch.sum
        self.ops = Ops(sum=total, tanh=tanh, gelu=lambda x: gelu(x, approximate="tanh"))

    def tensors(self, leaves: Arrays, constants: Arrays) -> tuple[list[Any], list[Any]]:
        given = [self.torch.tensor(leaf, requires_grad=True) for leaf in leaves]
        return given, [self.torch.tensor(constant) for constant in constants]

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        (given, fixed), ops = self.tensors(leaves, constants), self.ops

        def run() -> list[Any]:
            for leaf in given:
                leaf.grad = None
            model(ops, *given, *fixed).backward()
            return [leaf.grad for leaf in given]

        return Entrant(run, run)

    def gradcheck(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        (given, fixed), ops = self.tensors(leaves, constants), self.ops
        check = self.torch.autograd.gradcheck

        def run() -> None:
            assert check(lambda *moved: model(ops, *moved, *fixed), given)

        return Entrant(run, self.step(model, leaves, constants).gradients)


class Jax(System):
    """JAX: the whole step is one compiled program, which sees the model once."""

    name, package = "JAX (jit)", "jax"

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        jnp = self.jax.numpy
        self.ops = Ops(sum=jnp.sum, tanh=jnp.tanh, gelu=self.jax.nn.gelu)

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        jax, places = self.jax, tuple(range(len(leaves)))
        both = jax.jit(jax.value_and_grad(lambda *a: model(self.ops, *a), argnums=places))
        given = [jax.numpy.asarray(a) for a in (*leaves, *constants)]

        def run() -> list[Any]:
            return list(jax.block_until_ready(both(*given))[1])

        return Entrant(run, run)


class Autograd(System):
    """HIPS autograd."""

    name = package = "autograd"

    def __init__(self) -> None:
        self.autograd = importlib.import_module("autograd")
        anp = importlib.import_module("autograd.numpy")
        self.ops = Ops(sum=anp.sum, tanh=anp.tanh, gelu=gelu_of(anp.tanh))

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        places = tuple(range(len(leaves)))
        both = self.autograd.value_and_grad(lambda *a: model(self.ops, *a), argnum=places)

        def run() -> list[Any]:
            return list(both(*leaves, *constants)[1])

        return Entrant(run, run)


class Mygrad(System):
    """MyGrad; a leaf's gradient is dropped when its next step begins."""

    name = package = "mygrad"

    def __init__(self) -> None:
        self.mygrad = importlib.import_module("mygrad")
        tanh = self.mygrad.tanh
        self.ops = Ops(sum=self.mygrad.sum, tanh=tanh, gelu=gelu_of(tanh))

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant:
        given = [self.mygrad.tensor(leaf) for leaf in leaves]
        fixed = [self.mygrad.tensor(a, constant=True) for a in constants]

        def run() -> list[Any]:
            model(self.ops, *given, *fixed).backward()
            return [leaf.grad for leaf in given]

        return Entrant(run, run)


class Micrograd(System):
    """micrograd: scalars, and neither tanh nor arrays."""

    name = package = "micrograd"
    scalars = True

    def __init__(self) -> None:
        self.value = importlib.import_module("micrograd.engine").Value

    def step(self, model: Model, leaves: Arrays, constants: Arrays) -> Entrant | None:
        if any(a.shape for a in (*leaves, *constants)):
            return None
        given = [self.value(float(leaf)) for leaf in leaves]
        fixed = [self.value(float(constant)) for constant in constants]

        def run() -> list[Any]:
            for leaf in given:
                leaf.grad = 0
            model(Ops(), *given, *fixed).backward()
            return [leaf.grad for leaf in given]

        return Entrant(run, run)


PEERS = (Torch, Jax, Autograd, Mygrad, Micrograd)


def installed() -> Iterator[System]:
    """The peers that can be imported, in the order of the table."""
    for peer in PEERS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield peer()
        except ImportError:
            continue


def version_of(system: System | type[System]) -> str:
    """Name and version, as in "PyTorch 2.13.0"."""
    return f"{system.name} {version(system.package)}"
