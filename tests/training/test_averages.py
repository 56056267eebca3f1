"""Training without validation: averaged predictions and weights, and training rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from small import SMALL, mlp, population, toy_task
from torch import Tensor

from llpbench.core.cell import Average, Cell, Protocol
from llpbench.core.criteria import CRITERIA
from llpbench.core.metrics import verdict
from llpbench.data.loading import load_table
from llpbench.data.splits import assign_bags
from llpbench.data.tasks import build_task
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.methods.dllp import DLLP
from llpbench.training.cell_runs import make_task
from llpbench.training.cohort import Trainee
from llpbench.training.device import Machine
from llpbench.training.judging import judge
from llpbench.training.population import Population
from llpbench.training.specification import make_cell
from llpbench.training.stage import _AveragedWeights


def averaging(average: str, method: DLLP | None = None, seeds: tuple[int, ...] = (0,)) -> Population:
    """Members on the toy task, trained without validation."""
    members = [Trainee(seed, method or DLLP(SMALL), toy_task(seed)) for seed in seeds]
    trained = Population(members, mlp, Protocol(epochs=3, patience=1), Machine(), average=Average.of(average))
    trained.train()
    return trained


def test_half_averages_epochs_of_second_half() -> None:
    average = _AveragedWeights("half", 5, 10, torch.zeros(2, 3))
    for epoch in range(5):
        average.after_step(torch.full((2, 3), 100.0))
        average.after_epoch(epoch, torch.full((2, 3), float(epoch)))
    assert average.weights[:, :, 0].tolist() == [[2.0, 3.0, 4.0]] * 2


def test_moving_average_forgets_initial_weights() -> None:
    average = _AveragedWeights("ema", 3, 100, torch.ones(1, 2))
    theta = torch.zeros(1, 2)
    for epoch in range(3):
        for _ in range(100):
            average.after_step(theta)
        average.after_epoch(epoch, theta)
    assert average.weights.shape == (1, 1, 2)
    assert average.weights[0, 0].tolist() == pytest.approx([np.exp(-1)] * 2, abs=2e-3)


def test_training_without_validation_takes_same_steps() -> None:
    """The same random numbers: the weights of the last epoch are equal, and all epochs are trained."""
    plain = population(DLLP(SMALL), [0], epochs=6, patience=6)
    last: list[Tensor] = []
    plain.train(lambda _: last.append(plain.state.weights))
    half = averaging("half:6")
    assert half.outcomes[0].epochs == 6
    assert half.outcomes[0].selected == {}
    assert half.outcomes[0].averaged is not None
    assert len(half.outcomes[0].averaged) == 3
    chosen = {choice.epoch: choice.weights for choice in plain.outcomes[0].selected.values()}
    assert chosen, "some criterion chooses an epoch"
    for epoch, weights in chosen.items():
        if epoch >= 3:
            assert torch.equal(half.outcomes[0].averaged[epoch - 3], weights)
    assert any(epoch >= 3 for epoch in chosen)


def test_averaged_prediction_is_judged_for_every_criterion() -> None:
    trained, task = averaging("half:4", seeds=(0, 0)), toy_task(0)
    results, predicted = judge(trained, [0, 1], keep=True)
    assert set(results) == set(CRITERIA)
    weights = [outcome.averaged for outcome in trained.outcomes]
    proba = np.mean(
        [trained.predict(n, w, task.test.rows) for n, w in enumerate(weights) if w is not None], axis=(0, 1)
    )
    for result in results.values():
        assert (result["epoch"], result["validation"]) == (3, None)
        assert result["test"] == pytest.approx(verdict(proba, task.test)["test"])
    np.testing.assert_allclose(predicted["l1"]["test"], proba)


def test_permuted_labels_change_no_averaged_weight() -> None:
    assignment = toy_assignment().with_validation_in_training()
    found = []
    for table in (toy_table(), permuted_within(toy_table(), assignment.train)):
        members = [Trainee(0, DLLP(SMALL), build_task(table, assignment))]
        trained = Population(members, mlp, Protocol(), Machine(), average=Average("ema", 3))
        found.append(trained.train()[0].averaged)
    assert found[0] is not None
    assert found[1] is not None
    assert torch.equal(found[0], found[1])


def cell_of(**changes: str) -> Cell:
    cell = make_cell("dllp", "wine_quality", bag_size=64, encoder="mlp", protocol=Protocol(epochs=2, patience=2))
    return replace(cell, **changes)  # type: ignore[arg-type]


def test_validation_bags_are_trained_on_last() -> None:
    assignment = assign_bags(load_table("wine_quality"), "ordered", 64, 0)
    usual, whole = (make_task(cell_of(average=average), 0, "bags", None) for average in ("", "half:2"))
    assert len(whole.train.sizes) == len(assignment.train) + len(assignment.validation)
    np.testing.assert_array_equal(whole.train.counts[: len(assignment.train)], usual.train.counts)
    np.testing.assert_array_equal(whole.train.counts[len(assignment.train) :], usual.validation.counts)
    assert usual.manifest == whole.manifest == assignment.manifest
    np.testing.assert_array_equal(whole.test.labels, usual.test.labels)
