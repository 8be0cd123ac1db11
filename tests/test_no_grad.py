"""no_grad records nothing where it holds, and holds nowhere else; threads do not meet."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import minigrad as mg


def leaf(values: object, name: str = "x") -> mg.Tensor:
    return mg.tensor(values, requires_grad=True, name=name)


def test_no_grad_records_nothing_as_a_context_nested_and_after_an_error() -> None:
    x = leaf(1.0)
    with pytest.raises(KeyError), mg.no_grad():
        with mg.no_grad():
            assert not (x * 2).requires_grad
        assert not (x * 2).requires_grad
        raise KeyError
    assert (x * 2).requires_grad


def test_no_grad_as_a_decorator_of_functions_and_generators() -> None:
    x = leaf(1.0)

    @mg.no_grad()
    def double(y: mg.Tensor) -> mg.Tensor:
        return y * 2

    @mg.no_grad()
    def doubles():
        yield x * 2
        yield x * 2
        return "done"

    assert not double(x).requires_grad and double.__name__ == "double"
    made = doubles()
    assert not next(made).requires_grad
    assert (x * 2).requires_grad  # on again while the generator waits
    assert not next(made).requires_grad
    with pytest.raises(StopIteration, match="done"):
        next(made)


def test_a_generator_under_no_grad_still_gets_what_is_sent_and_thrown() -> None:
    @mg.no_grad()
    def echo():
        try:
            got = yield "ready"
            yield got
        except KeyError:
            yield "caught"

    made = echo()
    assert next(made) == "ready"
    assert made.send(7) == 7
    assert made.throw(KeyError) == "caught"


def test_no_grad_holds_for_its_own_thread_only() -> None:
    x, inside, done, seen = leaf(1.0), threading.Event(), threading.Event(), []

    def other() -> None:
        inside.wait(10)
        seen.append((x * 2).requires_grad)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with mg.no_grad():
        inside.set()
        assert done.wait(10)
    thread.join()
    assert seen == [True]


def test_one_no_grad_object_may_serve_two_threads_that_leave_in_the_order_they_came() -> None:
    shared, x = mg.no_grad(), leaf(1.0)
    one_in, both_in, one_out = (threading.Event() for _ in range(3))

    def one() -> bool:
        with shared:
            one_in.set()
            both_in.wait(1)
        one_out.set()
        return (x * 2).requires_grad

    def two() -> bool:
        one_in.wait(1)
        with shared:
            both_in.set()
            one_out.wait(1)
        return (x * 2).requires_grad

    with ThreadPoolExecutor(2) as pool:
        assert [f.result() for f in [pool.submit(one), pool.submit(two)]] == [True, True]


def test_two_threads_with_200_backwards_each_give_the_serial_gradients() -> None:
    def run(sign: float) -> list[float]:
        found = []
        for k in range(200):
            x = leaf([sign * k / 100, 1.0])
            mg.sum(mg.tanh(x * x + x)).backward()
            found.append(x.grad[0])
        return found

    serial = [run(1.0), run(-1.0)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, [1.0, -1.0])) == serial
    assert serial[0] != serial[1]
