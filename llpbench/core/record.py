"""The result of one run, as one JSON object: a line of the journal.

A *cell* is a full specification without a seed; a *run* is one seed of a cell. NaN is written as null.
"""

# no `from __future__ import annotations`: NotRequired would go unnoticed
from typing import Any, Literal, NotRequired, TypedDict

SCHEMA = 2
"""of the journal's lines; journals with another one are refused"""

PROPORTION_BINS = 20

Status = Literal["ok", "failed", "out-of-memory"]


class CriterionResult(TypedDict):
    """What one validation criterion chose, and how that did on the test rows."""

    epoch: int | None
    """zero-based best epoch; null for a method without epochs"""
    validation: float | None
    """the criterion's value there"""
    test: dict[str, float | None]
    """test metrics there, by name (`criteria.METRICS`)"""
    diagnostics: dict[str, float | None]
    """what else is known of the method there, by name (`training/diagnostics.py`), such as its class awareness score,
    and the weights that it changes in the course of training (`Reports.schedules`)"""


class Record(TypedDict):
    """One line of the journal."""

    schema: int
    run: str
    """`<cell>-<seed>`"""
    cell: str
    """hash of `spec`: never of order, paths, hardware or code"""
    seed: int
    spec: dict[str, Any]
    """the cell, canonical: method, params, dataset, bagging, bag_size, encoder, pretraining, protocol and, where it is
    not float32, precision"""
    method: dict[str, Any]
    """what the method's declaration says: kind (neural or direct), role (floor, ceiling or ""), reference; `changed`:
    the hyperparameters that differ from their defaults (`training.specification.changed`)"""
    dataset: dict[str, Any]
    """what the dataset's declaration says: code ("" if it has none), licence, and as far as it is declared or known
    rows, numeric, categorical (numbers of features), classes; null where not"""
    status: Status
    reason: str
    """why the run failed, in one line, with the epoch; "" if it did not"""
    results: dict[str, CriterionResult]
    """by criterion (`criteria.CRITERIA`); empty unless status is ok. Without labels of validation rows it has no
    fine-grained criterion"""
    curves: dict[str, list[float | None]]
    """by criterion (`criteria.BOARD_CRITERIA`): its value on the validation rows after each epoch of the last stage, to
    four digits; empty for direct methods, failed runs, and where they were not kept"""
    epochs: int
    """epochs trained, over all stages (and both validation regimes, where stages are run for each); 0 without epochs"""
    parameters: int
    """trainable numbers of one member"""
    times: dict[str, float]
    """seconds: data, warm-up (the first step of every stage and population size, compilation included), train (all
    other steps), evaluate, predict (the test rows, once), test (predictions at every best epoch and their judgement),
    `stage NAME` for each stage, total; the population's own, divided by its members. `pretraining` is what its
    pretraining took when it was computed, for whichever run, and not part of total. What was not measured is absent"""
    memory_mb: float | None
    """peak memory of the population: of the GPU, or on CPU of the process; null where the platform does not tell"""
    members: int
    """members trained together"""
    data: dict[str, str]
    """fingerprint (hash of the table) and manifest (hash of every split and bag); empty if a run failed before"""
    bags: dict[str, Any]
    """`number` of training bags, their `sizes` (least, median, most), `validation` and `test`: numbers of bags there,
    and `histograms`: for each class how many training bags have a proportion in each of `PROPORTION_BINS` equal bins of
    [0, 1]; empty if a run failed before"""
    sources: dict[str, str | None]
    """hash of the source (`core.source`) of method, dataset, bagging and encoder (null where there is none): a run of
    other code is stale"""
    numerics: int
    """version of what the engine computes (`core.provenance.NUMERICS`)"""
    restamped: NotRequired[dict[str, Any]]
    """where `sources` and `numerics` were renewed without running again (`llpbench restamp`): `when`, `commit` and
    whether the code was `dirty`, and the `sample`: number of runs made again then, with equal results; `reference`,
    where some were compared with what the code before gives on the same machine: their number, and its commits"""
    code: dict[str, Any]
    """version, commit, dirty"""
    libraries: dict[str, str]
    hardware: dict[str, Any]
    """device, name, threads, compiled, precision; `shared`: whether others used the device at the end of the run, null
    if that is unknown"""
    finished: str
    """UTC, ISO 8601"""


class Chosen(TypedDict):
    """What one validation criterion chose of the trials of a tuning."""

    trial: int
    """its number; 0 is the configuration that the search started from"""
    cell: str
    """id of the cell with this configuration: its runs are the tuned results, under this criterion alone"""
    params: dict[str, Any]
    """every hyperparameter of the method"""
    value: float
    """the criterion on the validation rows of the tuning's own split"""
    default: float | None
    """the same of trial 0"""


class TuningRecord(TypedDict):
    """One line of the journal: what a search for hyperparameters found (`core/tunings.py`)."""

    schema: int
    tuning: str
    """hash of `spec`"""
    spec: dict[str, Any]
    """the search, canonical: cell, regime, trials, space, sampler, seed, together, eta"""
    method: dict[str, Any]
    dataset: dict[str, Any]
    """these as in a run's record"""
    status: Status
    """failed only if no trial could be chosen"""
    reason: str
    best: dict[str, Chosen]
    """by criterion of the regime"""
    trials: list[dict[str, Any]]
    """number, params (those that were searched), status (ok, stopped, failed, out-of-memory), reason, values (by
    criterion), epochs, rungs ([epochs, best value of the guide so far]), seconds"""
    times: dict[str, float]
    """seconds: total, of all trials"""
    epochs: int
    """trained by all trials"""
    memory_mb: float | None
    sources: dict[str, str | None]
    numerics: int
    code: dict[str, Any]
    libraries: dict[str, str]
    hardware: dict[str, Any]
    finished: str
    restamped: NotRequired[dict[str, Any]]
    """these as in a run's record"""
    former: NotRequired[list[str]]
    """ids of cells that were chosen by records of this tuning whose place this one has taken: their runs are results of
    a search that counts no more, and of nothing that anybody has set"""
