"""A search for a method's hyperparameters on toy data, as in `llpbench tune`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llpbench.conformance.subject import InapplicableError, Subject, require
from llpbench.core.cell import Protocol
from llpbench.core.criteria import Regime
from llpbench.core.tables import Assignment, Table
from llpbench.core.tuning_spec import Trial, Tuning
from llpbench.data.toy import permuted_within, toy_assignment, toy_table
from llpbench.training.device import Machine
from llpbench.training.specification import make_cell

_TRIALS, _TOGETHER, _EPOCHS, _ETA = 4, 2, 3, 2
"""size of a search: two architectures (four for a direct method), and a rung at which half of the trials stop"""
ROWS, BAGS = 240, 3
"""size of the toy table and of training: many validation rows, so that small differences show, and few steps"""


def search_label_free(subject: Subject) -> str:
    """No label of a single row reaches a search for its hyperparameters."""
    from llpbench.tuning.space import search_space  # Optuna

    space = search_space(subject.name)
    if not space:
        raise InapplicableError("no hyperparameter has a range to search")
    assert subject.learned  # a fault of every training belongs to another check
    sees = subject.declared.supervision == "instances"
    table, assignment = toy_table(rows=ROWS), toy_assignment(rows=ROWS)
    assignment = replace(assignment, train=assignment.train[:BAGS])
    within_training = permuted_within(table, assignment.train)
    if not sees:
        fine = _search(subject, "fine", space, table, assignment)
        same = _search(subject, "fine", space, within_training, assignment) == fine
        require(same, "labels permuted within training bags change what a search finds")
    coarse = _search(subject, "coarse", space, table, assignment)
    made, chosen = coarse
    require(bool(chosen), f"no trial of a search gives a value: {next(filter(None, (t.reason for t in made)), '')}")
    permuted = permuted_within(table if sees else within_training, assignment.validation)
    what = "validation bags" if sees else "training and validation bags"
    same = _search(subject, "coarse", space, permuted, assignment) == coarse
    require(same, f"labels permuted within {what} change what a coarse-grained search finds")
    return f"{_TRIALS} trials and what they choose are the same, whatever the labels within bags"


def _search(
    subject: Subject, regime: Regime, space: dict[str, Any], table: Table, assignment: Assignment
) -> tuple[list[Trial], Any]:
    """Return the trials without their times, and the selection of each criterion."""
    from llpbench.tuning.search import opened  # Optuna
    from llpbench.tuning.trials import Bench, without_test
    from llpbench.tuning.tuning_runs import choices, make_trials

    protocol = Protocol(epochs=_EPOCHS, patience=_EPOCHS)
    cell = make_cell(subject.name, "adult", bag_size=assignment.train.shape[1], encoder="mlp", protocol=protocol)
    tuning = Tuning(cell, regime, _TRIALS, space, together=1 if subject.direct else _TOGETHER, eta=_ETA)
    task = without_test(subject.task(table, assignment), tuning)
    bench = Bench(tuning, task, Machine(), most=None if getattr(subject.declared, "stackable", True) else 1)
    with opened(tuning, None) as search:
        made = [replace(trial, seconds=0.0) for trial in make_trials(search, bench)]
    return made, choices(tuning, made)
