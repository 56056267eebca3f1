"""Holdouts without labels of rows: coarse-grained criteria and metrics of bags."""

from __future__ import annotations

from dataclasses import replace

import torch
from small import SMALL, together, toy_task

from llpbench.core.bags import Task
from llpbench.core.criteria import CRITERIA
from llpbench.methods.dllp import DLLP
from llpbench.methods.tabllp_pse import TabLLPPSE, _PSEParams
from llpbench.training.judging import judge

COARSE = {name for name, criterion in CRITERIA.items() if criterion.regime == "coarse"}


def unlabelled(task: Task) -> Task:
    """The same bags without labels of rows."""
    validation, test = (replace(holdout, labels=None) for holdout in (task.validation, task.test))
    return replace(task, validation=validation, test=test, train_labels=None)


def test_only_coarse_criteria_are_selected_without_labels() -> None:
    with_labels = together(DLLP(SMALL), {0: toy_task(0), 1: toy_task(1)})
    population = together(DLLP(SMALL), {0: unlabelled(toy_task(0)), 1: unlabelled(toy_task(1))})
    for known, unknown in zip(with_labels.train(), population.train(), strict=True):
        assert set(unknown.selected) == COARSE
        for name, choice in unknown.selected.items():
            assert choice.epoch == known.selected[name].epoch
            assert choice.value == known.selected[name].value
            assert torch.equal(choice.weights, known.selected[name].weights)
    for number in (0, 1):
        results, full = judge(population, [number]).results, judge(with_labels, [number]).results
        assert set(results) == COARSE
        for name, result in results.items():
            assert set(result["test"]) == {"mpiou", "l1"}
            assert result["test"] == {metric: full[name]["test"][metric] for metric in ("mpiou", "l1")}
            assert result["diagnostics"] == {}


def test_stage_after_judged_stage_runs_once() -> None:
    method = TabLLPPSE(_PSEParams(hidden=16, learning_rate=0.01, refresh=1))
    population, known = (together(method, {0: task}) for task in (unlabelled(toy_task(0)), toy_task(0)))
    (outcome,), (full,) = population.train(), known.train()
    assert outcome.epochs == 3 + 3  # and not for the other regime again
    assert full.epochs == 3 + 3 + 3
    assert set(outcome.selected) == COARSE
    for name, choice in outcome.selected.items():
        torch.testing.assert_close(choice.weights, full.selected[name].weights, rtol=1e-4, atol=1e-5)
        assert choice.training == "coarse"
