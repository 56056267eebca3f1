"""Bags of unequal size: which share a step, what an epoch draws, how little is padded; equal ones notice nothing."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from small import SMALL, assert_same, population, together

from llpbench.core.bags import Task
from llpbench.core.errors import LLPBenchError
from llpbench.core.method import Method
from llpbench.core.seeding import generator
from llpbench.core.tables import Assignment, Split
from llpbench.data.tasks import build_task
from llpbench.data.toy import toy_table
from llpbench.methods.bag_soft_label import BagSoftLabel
from llpbench.methods.dllp import DLLP
from llpbench.methods.tabllp_bdc import TabLLPBDC, _BDCParams
from llpbench.training.training_data import LARGEST_RATIO, TrainingData, _buckets, profile

SKEWED = [90, 1, 2, 40, 3, 1, 5, 2, 60, 8, 1, 12, 3, 2, 1, 20, 4, 1, 30, 6, 2]
"""sizes of bags, as keys of real tables make them"""


def skewed_task(seed: int = 0, sizes: list[int] | None = None, shuffled: bool = True) -> Task:
    """The toy table in bags of these sizes, in an order and with rows of the seed's own."""
    rng, sizes = np.random.default_rng(seed), sizes or SKEWED
    rows = rng.permutation(sum(sizes) + 120)
    if shuffled:
        sizes = [sizes[position] for position in rng.permutation(len(sizes))]
    index = np.full((len(sizes), max(sizes)), -1)
    for bag, end in enumerate(np.cumsum(sizes)):
        index[bag, : sizes[bag]] = rows[end - sizes[bag] : end]
    rest = rows[sum(sizes) :]
    table = toy_table(len(rows))
    split = Split(rows[: sum(sizes)], rest[:60], rest[60:])
    return build_task(table, Assignment(split, index, rest[:60].reshape(6, 10), rest[60:].reshape(6, 10)))


@pytest.mark.parametrize("per_step", [1, 2, 3, 4])
def test_buckets_hold_every_bag_once_by_size(per_step: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(15):
        sizes = np.round(rng.lognormal(2, 1.5, size=rng.integers(1, 60))).astype(np.int64) + 1
        found = _buckets(sizes, per_step)
        assert sorted(np.concatenate(found).tolist()) == list(range(len(sizes)))
        assert all(len(bucket) % per_step == 0 for bucket in found[:-1])  # only the last may leave a gap
        for bucket in found:
            alike = int((LARGEST_RATIO * sizes[bucket] >= sizes[bucket].max()).sum())
            assert len(bucket) - alike < per_step, "shorter bags only fill the last step"
        assert all(sizes[one].min() >= sizes[other].max() for one, other in pairwise(found))


@pytest.mark.parametrize(("seed", "per_step"), [(0, 2), (1, 3), (2, 2), (3, 3)])
def test_epoch_draws_every_bag_once_except_last_gap(seed: int, per_step: int) -> None:
    task = skewed_task(seed)
    data = TrainingData([task.train], torch.device("cpu"))
    plan = data.plan_epoch("bags", per_step, 2, {0: np.random.default_rng(seed)}, epoch=seed)
    steps = plan.drawn[0].numpy()
    assert len(steps) == len(plan.widths) == data.steps("bags", per_step) == -(-len(SKEWED) // per_step)
    assert plan.keys.shape == (1, len(steps), 2)
    drawn = np.bincount(steps.ravel(), minlength=len(SKEWED))
    assert drawn.min() == 1
    gap = steps.size - len(SKEWED)
    last = _buckets(task.train.sizes, per_step)[-1]
    assert drawn.sum() - len(SKEWED) == gap < per_step
    assert set(np.flatnonzero(drawn > 1).tolist()) <= set(last.tolist())
    for step, width in zip(steps, plan.widths, strict=True):
        assert any(set(step.tolist()) <= set(bucket.tolist()) for bucket in _buckets(task.train.sizes, per_step))
        assert task.train.sizes[step].max() <= width


def test_each_epoch_has_its_own_step_order() -> None:
    data = TrainingData([skewed_task().train], torch.device("cpu"))
    widths = [data.plan_epoch("bags", 2, 1, {0: np.random.default_rng(0)}, epoch).widths for epoch in (0, 0, 1)]
    assert widths[0] == widths[1] != widths[2]
    assert sorted(widths[0]) == sorted(widths[2])
    assert list(widths[0]) not in (sorted(widths[0]), sorted(widths[0], reverse=True))


@pytest.mark.parametrize("epoch", [0, 3])
def test_equal_bags_are_drawn_in_plain_order(epoch: int) -> None:
    """The same calls of the generator (permutation, choice, integers), and steps in the order drawn."""
    pop = population(DLLP(SMALL), [0, 1], size=16)  # 15 bags
    plan = pop.data.plan_epoch("bags", 2, 3, {n: generator(n, "training") for n in (0, 1)}, epoch)
    for number in (0, 1):
        rng = generator(number, "training")
        order = rng.permutation(15)
        expected = np.concatenate([order, rng.choice(order[:14], size=1)]).reshape(8, 2)
        assert plan.drawn[number].tolist() == expected.tolist()
        assert plan.keys[number].tolist() == rng.integers(2**32, size=(8, 3)).tolist()
    assert plan.widths == (16,) * 8


def test_step_holds_rows_of_its_bags_only() -> None:
    task = skewed_task(3)
    data, train = TrainingData([task.train], torch.device("cpu")), task.train
    plan = data.plan_epoch("bags", 2, 1, {0: np.random.default_rng(0)})
    for step, width in enumerate(plan.widths):
        bags = data.take("bags", torch.tensor([0]), plan.drawn[:, step], width, data.targets())
        for position, bag in enumerate(plan.drawn[0, step].tolist()):
            inside = bags.mask[0, position]
            rows = train.index[bag, : train.sizes[bag]]
            assert int(inside.sum()) == len(rows)
            assert torch.equal(bags.rows.numeric[0, position][inside], torch.from_numpy(train.rows.numeric[rows]))
            assert torch.equal(
                bags.rows.categorical[0, position][inside], torch.from_numpy(train.rows.categorical[rows])
            )
            assert bags.counts[0, position].tolist() == train.counts[bag].tolist()


@pytest.mark.parametrize(
    "method",
    [BagSoftLabel(SMALL), TabLLPBDC(_BDCParams(hidden=16, learning_rate=0.01))],
    ids=lambda m: type(m).__name__,
)
def test_members_with_permuted_bag_sizes_train_as_alone(method: Method) -> None:
    tasks = {seed: skewed_task(seed) for seed in (0, 1, 2)}
    assert len({profile(task.train, 2) for task in tasks.values()}) == 1
    assert tasks[0].train.sizes.tolist() != tasks[1].train.sizes.tolist()
    three = together(method, tasks, epochs=2).train()
    for seed in (0, 2):
        (alone,) = together(method, {seed: tasks[seed]}, epochs=2).train()
        assert_same(alone, three[seed])


def test_members_with_different_buckets_train_apart() -> None:
    # as many rows and bags as the others have
    other = [89, 1, 2, 40, 3, 1, 5, 2, 60, 8, 1, 12, 3, 2, 1, 20, 4, 1, 30, 6, 3]
    assert (sum(other), len(other)) == (sum(SKEWED), len(SKEWED))
    with pytest.raises(LLPBenchError, match="same shape"):
        together(DLLP(SMALL), {0: skewed_task(0), 1: skewed_task(1, other)})
