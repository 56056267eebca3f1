"""What a loss is given of counts and of the prior: in stages of bags and of rows, in training and prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import SMALL, mlp, together, toy_task
from torch import Tensor

from llpbench.core.bags import Bags, Task
from llpbench.core.method import Now, Stage, Unit
from llpbench.core.metrics import holdout_criteria
from llpbench.core.model import Model
from llpbench.methods.bag_soft_label import BagSoftLabel
from llpbench.methods.dllp import DLLP
from llpbench.training.stage import StageRun

NAN = np.nan


class Prior(DLLP):
    """Its loss is the share of the first class, and it predicts the shares of all."""

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        value: Tensor = bags.prior[0] + 0 * super().loss(model, bags, now)
        return value

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        value: Tensor = bags.prior.log() + 0 * model.log_proba(bags)
        return value


@pytest.mark.parametrize("unit", ["bags", "rows"])
def test_each_member_uses_its_own_prior(unit: Unit) -> None:
    tasks = {seed: toy_task(seed) for seed in (0, 1)}
    schemas = [task.schema for task in tasks.values()]
    assert schemas[0].prior != schemas[1].prior  # else this test shows nothing
    for schema, task in zip(schemas, tasks.values(), strict=True):
        labels = task.train_labels
        assert labels is not None
        assert schema.prior == pytest.approx(np.bincount(labels) / len(labels))
    method = type("Own", (Prior,), {"stages": (Stage(unit=unit),)})(SMALL)
    population = together(method, tasks, epochs=1)
    run = StageRun(population, method.stages[0], population.state)
    assert run.run_epoch(0).tolist() == pytest.approx([schema.prior[0] for schema in schemas])
    for number, (schema, task) in enumerate(zip(schemas, tasks.values(), strict=True)):
        proba = population.predict(number, population.stack.theta[number][None], task.test.rows)
        assert np.allclose(proba, schema.prior)
    (alone, other) = population.train()
    for outcome, task in ((alone, tasks[0]), (other, tasks[1])):
        expected = np.tile(task.schema.prior, (len(task.validation.rows.numeric), 1))
        assert outcome.selected["l1"].value == pytest.approx(
            holdout_criteria(expected, task.validation)["l1"], abs=1e-6
        )


class Recording(DLLP):
    """Keeps all that it is given."""

    stackable = False
    seen: list[Bags]

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        self.seen.append(bags)
        return super().loss(model, bags, now)


def recorded(task: Task, unit: Unit = "bags") -> list[Bags]:
    method = type("Own", (Recording,), {"stages": (Stage(unit=unit),)})(SMALL)
    method.seen = []
    (outcome,) = together(method, {0: task}, epochs=1).train()
    assert not outcome.failure
    return list(method.seen)


def with_counts(task: Task, change: dict[int, list[float]]) -> Task:
    """The task with other counts of some bags."""
    counts = task.train.counts.copy()
    for bag, given in change.items():
        counts[bag] = given
    train = replace(task.train, counts=counts)
    return replace(task, train=train, bags=train)


def test_loss_receives_given_counts() -> None:
    task = with_counts(toy_task(0), {0: [NAN, NAN], 1: [-1.25, 17.5], 2: [3.5, 12.5]})
    train = task.train
    told = {tuple(given) for bags in recorded(task) for given in bags.counts.tolist()}
    assert told == {(0.0, 0.0) if np.isnan(given).any() else tuple(given) for given in train.counts}
    for bags in recorded(task):
        assert torch.allclose(bags.proportions.sum(dim=1), torch.ones(2))
        assert bool((bags.proportions >= 0).all())
        assert torch.equal(bags.known, (bags.counts != 0).any(dim=1))
        assert torch.allclose(bags.prior, torch.tensor(train.prior).float())
        unknown = bags.proportions[~bags.known]
        assert torch.allclose(unknown, bags.prior.expand_as(unknown))


def test_row_stage_uses_counts_as_targets() -> None:
    task = with_counts(toy_task(0), {bag: [8.0, 8.0] for bag in range(15)} | {3: [NAN, NAN]})
    seen = recorded(task, "rows")
    known = torch.cat([bags.known for bags in seen])
    assert int((~known).sum()) >= 16  # the rows of one bag, and no row without
    for bags in seen:
        assert bags.counts.tolist() == bags.proportions.tolist() == [[0.5, 0.5]] * len(bags.mask)
        assert bags.mask.shape == (32, 1)


@pytest.mark.parametrize("method", [DLLP, BagSoftLabel])
def test_suppressed_bags_do_not_train(method: type[DLLP]) -> None:
    """Other features there change no weight, although the bags take part in steps."""
    task = with_counts(toy_task(0), {bag: [NAN, NAN] for bag in (0, 4, 9)})
    numeric = task.train.rows.numeric.copy()
    numeric[task.train.index[[0, 4, 9]].ravel()] += 5.0
    other = replace(task, train=replace(task.train, rows=task.train.rows._replace(numeric=numeric)))
    one, two = (together(method(SMALL), {0: each}, encoder=mlp, epochs=1).train()[0] for each in (task, other))
    assert torch.equal(one.selected["l1"].weights, two.selected["l1"].weights)
    known = replace(other, train=replace(other.train, counts=toy_task(0).train.counts))
    (three,) = together(method(SMALL), {0: known}, epochs=1).train()
    assert not torch.equal(one.selected["l1"].weights, three.selected["l1"].weights)
