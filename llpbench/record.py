"""The result of one run, as one JSON object: a line of the journal.

A *cell* is a full specification without a seed; a *run* is one seed of a cell. NaN is written as null.
"""

# no `from __future__ import annotations`: NotRequired would go unnoticed
from typing import Any, Literal, NotRequired, TypedDict

SCHEMA = 1
"""of the journal's lines; a journal with a newer one is refused"""

PROPORTION_BINS = 20

Status = Literal["ok", "failed", "out-of-memory"]


class Selected(TypedDict):
    """What one validation criterion chose, and how that did on the test rows."""

    epoch: int | None
    """zero-based best epoch; null for a method without epochs"""
    validation: float | None
    """the criterion's value there"""
    test: dict[str, float | None]
    """test metrics there, by name (`criteria.METRICS`)"""
    diagnostics: dict[str, float | None]
    """what else is known of the method there, by name (`diagnostics.py`), such as its class awareness score, and the
    weights that it changes in the course of training (`Method.schedules`)"""


class Record(TypedDict):
    """One line of the journal."""

    schema: int
    run: str
    """`<cell>-<seed>`"""
    cell: str
    """hash of `spec`: never of order, paths or hardware"""
    seed: int
    spec: dict[str, Any]
    """the cell, canonical: method, params, dataset, bagging, bag_size, encoder, pretraining, protocol"""
    method: dict[str, Any]
    """what the method's declaration says: kind (neural or direct), role (floor, ceiling or ""), reference; `changed`:
    the hyperparameters that differ from their defaults (`cell.changed`; absent from older journals)"""
    status: Status
    reason: str
    """why the run failed, in one line, with the epoch; "" if it did not"""
    results: dict[str, Selected]
    """by criterion (`criteria.CRITERIA`); empty unless status is ok"""
    epochs: int
    """epochs trained, over all stages (and both validation regimes, where stages are run for each); 0 without epochs"""
    parameters: int
    """trainable numbers of one member"""
    times: dict[str, float]
    """seconds: data, warm-up (the first step of every stage and population size, compilation included), train (all
    other steps), evaluate, predict (the test rows, once), test (predictions at every best epoch and their judgement),
    `stage NAME` for each stage, total; the population's own, divided by its members. `pretraining` is what its
    pretraining took when it was computed, for whichever run, and not part of total"""
    memory_mb: float
    """peak memory of the population: of the GPU, or on CPU of the process"""
    members: int
    """members trained together"""
    data: dict[str, str]
    """fingerprint (hash of the table) and manifest (hash of every split and bag)"""
    code: dict[str, Any]
    """version, commit, dirty"""
    libraries: dict[str, str]
    hardware: dict[str, Any]
    """device, name, threads, compiled, precision; `shared`: whether others used the device at the end of the run"""
    curves: NotRequired[dict[str, list[float | None]]]
    """by criterion (`criteria.BOARD_CRITERIA`): its value on the validation rows after each epoch of the last stage, to
    four digits; empty for direct methods and failed runs, absent from older journals"""
    bags: NotRequired[dict[str, Any]]
    """of the training split: `number`, and `histograms`: for each class how many bags have a proportion in each of
    `PROPORTION_BINS` equal bins of [0, 1]; absent from older journals"""
    finished: str
    """UTC, ISO 8601"""
