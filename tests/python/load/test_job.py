"""penstock.Job: what a loader delivers, told without reading."""

import numpy as np
import penstock
import pytest


@pytest.fixture
def view(tmp_path):
    np.arange(1000, dtype="<u2").tofile(tmp_path / "tokens.bin")
    return penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(10)


def loader(view, rank=0, world_size=1, **options):
    return penstock.Loader(view, rank=rank, world_size=world_size, framework="numpy", threads=1, **options)


def test_picks_are_a_structured_array_of_the_order(view):
    job = penstock.Job(view, global_batch_size=8, seed=1)
    picks = job.picks(95, 10)
    assert {"source", "epoch", "index"} <= set(picks.dtype.names)
    assert picks["epoch"].tolist() == [0] * 5 + [1] * 5
    assert picks["source"].tolist() == [0] * 10
    whole = job.picks(0, 100)["index"]
    assert sorted(whole.tolist()) == list(range(100))
    assert whole[:3].tolist() == [int(penstock.Permutation(100, 1)[i]) for i in range(3)]


def test_padded_rows_have_no_pick(view):
    plan = penstock.Job(view, global_batch_size=64, epochs=1).plan(64, rank=1, world_size=2)
    assert plan.valid.tolist() == [True] * 18 + [False] * 14
    assert (plan.picks[18:]["index"] == -1).all() and (plan.picks[18:]["source"] == -1).all()
    assert plan.next_position == 100


def test_a_state_of_the_job_resumes_a_loader(view):
    job = penstock.Job(view, global_batch_size=8, seed=5)
    resumed = loader(view, global_batch_size=4, seed=5)
    assert str(resumed.load_state_dict(job.state_dict(24))) == "resumes at epoch 0, position 24, step 6"
    assert next(resumed).indices.tolist() == job.picks(24, 4)["index"].tolist()


def test_the_epoch_of_a_resume_is_the_jobs(view):
    each = loader(view, global_batch_size=8)
    assert each.load_state_dict(penstock.Job(view, global_batch_size=8).state_dict(250)).epoch == 2


def test_what_cannot_be_is_refused(view):
    job = penstock.Job(view, global_batch_size=8)
    with pytest.raises(TypeError, match="endless"):
        len(job)
    with pytest.raises(penstock.InvalidArgumentError, match="not a multiple of world size 3; the nearest is 9"):
        job.plan(0, 0, 3)
    with pytest.raises(penstock.InvalidArgumentError, match="rank 2 of world size 2"):
        job.plan(0, 2, 2)
    for call in (lambda: job.plan(2**63 + 1, 0, 1), lambda: job.picks(2**63, 1), lambda: job.picks(0, 2**63)):
        with pytest.raises(penstock.InvalidArgumentError, match=r"2\^63"):
            call()
    with pytest.raises(penstock.InvalidArgumentError, match="view"):
        penstock.Job([1, 2], global_batch_size=8)
    with pytest.raises(penstock.InvalidArgumentError, match="tail"):
        penstock.Job(view, global_batch_size=8, tail="keep")
