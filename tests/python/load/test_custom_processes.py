"""A user's function that takes for ever: signals, close, seek, the interpreter's end and forks, in real processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from _scripts import assert_clean, assert_interrupted, started
from test_processes import command

HANGS = """
may_answer, asked = threading.Event(), threading.Event()
def order(epoch, positions):
    if epoch == HANGING:
        asked.set()
        may_answer.wait()
    return positions % len(view)
def made(**options):
    own = penstock.orders.Custom(order, name="order", version=1, fetch=options.pop("fetch", None))
    return make(order=own, **options)
"""


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    np.arange(60_000, dtype="u2").tofile(tmp_path / "tokens.bin")
    return tmp_path / "tokens.bin"


@pytest.mark.parametrize("kind", ["Loader", "Loader, fetch", "Job", "mixture"])
def test_ctrl_c_ends_the_wait_for_a_function_and_it_can_be_asked_again(tokens, kind):
    script = f"""
HANGING = 0
{HANGS}
if {kind!r} == "Job":
    own = penstock.orders.Custom(order, name="order", version=1)
    job = penstock.Job(view, global_batch_size=16, order=own)
    ask = lambda: job.picks(0, 16)["index"].tolist()
elif {kind!r} == "mixture":
    own = penstock.orders.Custom(order, name="order", version=1)
    mixture = penstock.Mixture({{"a": view, "b": view}}, [penstock.Stage({{"a": 1}})])
    loader = penstock.Loader(mixture, 16, order=own, framework="numpy")
    ask = lambda: next(loader).indices.tolist()
else:
    loader = made(fetch=64 if "fetch" in {kind!r} else None)
    ask = lambda: next(loader).indices.tolist()
print("waits", flush=True)
try:
    ask()
except KeyboardInterrupt:
    print("interrupted", flush=True)
may_answer.set()
assert ask() == list(range(16))
"""
    with started(command(script, tokens)) as process:
        assert_interrupted(process, "waits", "interrupted")


@pytest.mark.parametrize("fetch", [None, 64])
def test_a_loader_moves_and_closes_while_its_function_has_not_answered(tokens, fetch):
    script = f"""
HANGING, fails = 1, [True]
{HANGS}
hangs = order
def order(epoch, positions):
    if epoch == HANGING and fails:
        raise LookupError(fails.pop())  # it was asked ahead, and is asked again by those who need it
    return hangs(epoch, positions)
loader = made(fetch={fetch}, prefetch=4)
while not asked.is_set():  # what is read ahead comes to epoch 1 before the loop does
    batch = next(loader)
    time.sleep(0.02)
state = made().state_dict() | {{"position": len(view)}}
time.sleep(0.1)  # threads of the engine wait for it
begun = time.monotonic()
loader.seek(0)  # with the GIL, which the function needs
assert time.monotonic() - begun < 2
loader.load_state_dict(state)
loader.set_batch_size(8)
loader.seek(64)
loader.close()
assert time.monotonic() - begun < 4
may_answer.set()
fresh = made(fetch={fetch})
fresh.load_state_dict(state)
assert next(fresh).indices.tolist() == list(range(16))
"""
    assert_clean(command(script, tokens))


def test_exit_while_a_function_has_not_answered_is_clean(tokens):
    for work in ("next(loader)", "job.picks(0, 16)", "next(in_fetches)", "next(mixed)"):
        script = f"""
HANGING = 0
{HANGS}
loader, in_fetches = made(), made(fetch=64)
own = penstock.orders.Custom(order, name="order", version=1)
job = penstock.Job(view, global_batch_size=16, order=own)
mixture = penstock.Mixture({{"a": view, "b": view}}, [penstock.Stage({{"a": 1, "b": 1}})])
mixed = penstock.Loader(mixture, 16, order=own, framework="numpy")
threading.Thread(target=lambda: {work}, daemon=True).start()
asked.wait()
time.sleep(0.1)
"""
        assert_clean(command(script, tokens))


def test_exit_with_daemon_threads_that_ask_functions_is_clean(tokens):
    script = """
def order(epoch, positions):
    return [int(each) % len(view) for each in positions]
def forever():
    while True:
        own = penstock.orders.Custom(order, name="order", version=1)
        with make(order=own, epochs=1) as loader:
            list(islice(loader, 20))
        penstock.Job(view, global_batch_size=16, order=own).picks(0, 5000)
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.4)
"""
    for _ in range(3):
        assert_clean(command(script, tokens))


def test_a_child_after_a_fork_makes_its_own_and_refuses_what_was_made_before(tokens):
    script = """
own = penstock.orders.Custom(lambda epoch, positions: positions % len(view), name="order", version=1)
job = penstock.Job(view, global_batch_size=16, order=own)
loader = make(order=own)
next(loader)
assert job.picks(0, 3)["index"].tolist() == [0, 1, 2]
child = os.fork()
if child == 0:
    try:
        job.picks(0, 3)
    except penstock.InvalidArgumentError as error:
        assert "make the loader or the job here" in str(error), error
    else:
        raise AssertionError("the parent's thread is not here")
    assert next(make(order=own)).indices.tolist() == list(range(16))
    again = penstock.Job(view, global_batch_size=16, order=own)
    assert again.picks(0, 3)["index"].tolist() == [0, 1, 2]
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
next(loader)
"""
    assert_clean(command(script, tokens))
