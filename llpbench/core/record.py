"""The result of one run, as one JSON object: a line of the journal.

A *cell* is a full specification without a seed; a *run* is one seed of a cell. NaN is written as null.
"""

# no `from __future__ import annotations`: NotRequired would be ignored
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

from pydantic import AfterValidator, Field, GetPydanticSchema, WrapValidator
from typing_extensions import TypedDict  # pydantic accepts `typing.TypedDict` only from Python 3.12 on

from llpbench.core.criteria import METRICS, Regime

SCHEMA = 4
"""Schema of the journal's lines (`results/lines.py`). Lines of another schema are rejected."""

PROPORTION_BINS = 20

CPU_TRAIN, CPU_TOTAL = "cpu train", "cpu total"
"""Parts of a record's `times` that are CPU seconds."""

Status = Literal["ok", "failed", "out-of-memory", "timed-out"]

_LARGEST = 2**53 - 1
"""Largest integer that every reader of JSON represents exactly."""
ROUNDING = 1e-4
"""Tolerance for the bounds of criteria and metrics, as for predictions (`training/cell_runs.py`)."""


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Count = Annotated[int, Field(ge=0, le=_LARGEST)]
Positive = Annotated[int, Field(ge=1, le=_LARGEST)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Size = Annotated[float, Field(ge=0, le=_LARGEST)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Name = Annotated[str, Field(pattern=r"^[^\p{Cc}\p{Zl}\p{Zp}]+$", max_length=10_000)]
"""Text on one line. Some baggings name dozens of columns."""
_Id = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_Moment = Annotated[str, AfterValidator(_moment)]
"""Time in ISO 8601."""
Metrics = TypedDict(  # type: ignore[misc, operator]
    "Metrics",
    {
        name: Annotated[float, Field(ge=each.bounds[0] - ROUNDING, le=each.bounds[1] + ROUNDING)] | None
        for name, each in METRICS.items()
    },
    total=False,
)
"""Values of metrics within their bounds."""


def _like(kind: Any) -> GetPydanticSchema:
    """Return an annotation of a dictionary that pydantic checks as a `TypedDict`. Other keys are allowed."""
    return GetPydanticSchema(lambda _, handler: handler(kind))


_or_empty = WrapValidator(lambda value, validate: value if value == {} else validate(value))
"""Annotation of facts that a failed run may lack altogether."""


class _ProtocolFacts(TypedDict):
    """A cell's protocol (`cell.Protocol`)."""

    epochs: Positive
    patience: Positive
    bags_per_step: Positive


class _CellFacts(TypedDict):
    """A cell's specification (`cell.Cell`)."""

    method: Name
    dataset: Name
    bagging: str
    """text of the bagging, which may contain any names of columns"""
    bag_size: Count
    encoder: Name | None
    params: dict[str, Any]
    encoder_params: dict[str, Any]
    pretraining: Name
    pretraining_params: dict[str, Any]
    protocol: _ProtocolFacts | None
    max_bags: NotRequired[Positive]
    ensemble: NotRequired[Positive]
    precision: NotRequired[Name]
    numbers: NotRequired[Name]
    average: NotRequired[Name]


class _SearchFacts(TypedDict):
    """The specification of a search (`cell.Tuning`)."""

    cell: _CellFacts
    regime: Regime
    trials: Positive
    space: dict[str, dict[str, Any]]
    sampler: Name
    seed: Count
    together: Positive
    eta: Count


class _MethodFacts(TypedDict):
    kind: Literal["neural", "direct"]
    role: Literal["floor", "ceiling", "control", ""]
    reference: str | None
    changed: dict[str, Any]


class _DatasetFacts(TypedDict):
    code: str
    licence: NotRequired[str]
    rows: NotRequired[Count | None]
    numeric: NotRequired[Count | None]
    categorical: NotRequired[Count | None]
    classes: NotRequired[Count | None]


class _BagFacts(TypedDict):
    number: Count
    sizes: Annotated[list[Size], Field(min_length=3, max_length=3)]
    validation: Count
    test: Count
    histograms: list[Annotated[list[Count], Field(min_length=PROPORTION_BINS, max_length=PROPORTION_BINS)]]
    dropped: NotRequired[Count]


class _CodeFacts(TypedDict):
    version: str
    commit: str | None
    dirty: bool | None


class _HardwareFacts(TypedDict):
    device: str
    name: str
    threads: Count
    compiled: bool
    precision: str


class _TrialFacts(TypedDict):
    """One trial of a search (`tuning.search.Trial`)."""

    number: Count
    params: dict[str, Any]
    status: Literal[Status, "stopped"]
    reason: str
    values: dict[str, Real | None]
    epochs: Count
    rungs: list[Annotated[list[Real | None], Field(min_length=2, max_length=2)]]
    seconds: Seconds


class Judged(TypedDict):
    """Evaluation of predictions on the test rows."""

    test: Annotated[dict[str, Real | None], _like(Metrics)]
    """test metrics, by name (`criteria.METRICS`)"""
    reliability: NotRequired[list[Annotated[list[Real], Field(min_length=3, max_length=3)]]]
    """for each bin of the predicted probability: rows, mean probability, observed frequency (`metrics.verdict`)

    Absent without labels.
    """


class Evaluation(Judged):
    """The evaluation of one epoch. Criteria that select the same epoch share it."""

    epoch: Count | None
    """best epoch, zero-based; null for a method without epochs, the last epoch for an average"""
    diagnostics: dict[str, Real | None]
    """other facts about the method at that epoch, by name (`training/judging.py`)

    Examples are its class awareness score and the weights that it changes during training (`Reports.schedules`).
    """


class CriterionResult(Evaluation):
    """The epoch selected by one validation criterion, and its results on the test rows."""

    validation: Real | None
    """value of the criterion at that epoch; null for an average, which is trained on the validation bags"""


class _Line(TypedDict):
    """Fields that the lines of runs and of searches share."""

    schema: int
    method: Annotated[dict[str, Any], _like(_MethodFacts)]
    """facts of the method's declaration: kind (neural or direct), role (floor, ceiling, control or ""), reference

    `changed` are the hyperparameters that differ from their defaults (`training.specification.changed`).
    """
    dataset: Annotated[dict[str, Any], _like(_DatasetFacts)]
    """facts of the dataset's declaration: code ("" if it has none), licence, rows, numeric, categorical, classes

    `numeric` and `categorical` are numbers of features. Numbers that are neither declared nor known are null.
    """
    status: Status
    reason: str
    """reason and epoch of a failure, in one line; "" if the run or search succeeded"""
    memory_mb: Size | None
    """peak memory of the population; null if unknown

    On a GPU it is the memory of the GPU, on a CPU that of the process during training, including imports.
    """
    versions: dict[str, str | None]
    """versions of method, dataset, bagging and encoder (`core.provenance`); null if there is none, or unknown

    A run of other versions is stale.
    """
    numerics: Count
    """version of the engine (`core.provenance.NUMERICS`)"""
    code: Annotated[dict[str, Any], _like(_CodeFacts)]
    """version, commit, dirty"""
    libraries: dict[str, str]
    hardware: Annotated[dict[str, Any], _like(Annotated[_HardwareFacts, _or_empty])]
    """device, name, threads, compiled, precision; empty if a run failed earlier"""
    finished: _Moment
    """time at the end of the run in UTC, ISO 8601"""


class Record(_Line):
    """One line of the journal: a run."""

    run: str
    """`<cell>-<seed>`"""
    cell: _Id
    """hash of `spec`, which contains no order, paths, hardware or code"""
    seed: Count
    spec: Annotated[dict[str, Any], _like(_CellFacts)]
    """canonical specification of the cell: method, params, dataset, bagging, bag_size, encoder, pretraining, protocol

    It contains max_bags, ensemble, precision, numbers and average only if they differ from all bags, one member,
    float32, z-scores and a chosen epoch.
    """
    results: dict[str, CriterionResult]
    """results by criterion (`criteria.CRITERIA`); empty unless status is ok

    Without labels of validation rows there are no fine-grained criteria.
    """
    curves: dict[str, list[Real | None]]
    """values on the validation rows after each epoch of the last stage, to four digits, by `criteria.BOARD_CRITERIA`

    If stages are run for each validation regime, a criterion's values come from the run of its regime. Empty for direct
    methods, failed runs, and runs that did not store them.
    """
    epochs: Count
    """trained epochs in all stages, and in both validation regimes if stages are run for each

    0 for methods without epochs.
    """
    parameters: Count
    """number of trainable parameters of one member"""
    times: dict[str, Seconds]
    """seconds by part; times of the population are divided by its members, and parts that were not measured are absent

    - data
    - warm-up: the first step of every stage and population size, including compilation
    - train: all other steps
    - evaluate
    - total
    - `cpu train`, `cpu total`: CPU seconds of the process, for training with warm-up and in total; absent on a GPU
      and in records of older versions
    - pretraining: time of the pretraining when it was computed, by this or another run; not part of total
    """
    members: Count
    """number of members trained together"""
    data: dict[str, str]
    """fingerprint (hash of the table) and manifest (hash of every split and bag); empty if a run failed earlier"""
    bags: Annotated[dict[str, Any], _like(Annotated[_BagFacts, _or_empty])]
    """facts of the bags; empty if a run failed earlier

    - `number` of training bags, their `sizes` (smallest, median, largest)
    - `validation` and `test`: numbers of validation and test bags
    - `histograms`: for each class, numbers of training bags by proportion, in `PROPORTION_BINS` equal bins of [0, 1]
    - `dropped`: number of training rows that are in no bag, if sizes of bags are limited

    Records of older versions also have `spread` and `separation`.
    """


class SomeDone(NamedTuple):
    """Runs of a cell that are done before its other runs."""

    records: list[Record]


class Chosen(TypedDict):
    """The trial of a tuning selected by one validation criterion."""

    trial: Count
    """number of the trial; 0 is the initial configuration"""
    cell: _Id
    """id of the cell with this configuration; its runs are the tuned results, under this criterion only"""
    params: dict[str, Any]
    """every hyperparameter of the method"""
    value: Real
    """value of the criterion on the validation rows of the tuning's own split"""
    default: Real | None
    """value of the criterion in trial 0"""


class TuningRecord(_Line):
    """One line of the journal: a hyperparameter search (`core/cell.py`), failed only if no trial could be selected."""

    tuning: _Id
    """hash of `spec`"""
    spec: Annotated[dict[str, Any], _like(_SearchFacts)]
    """canonical specification of the search: cell, regime, trials, space, sampler, seed, together, eta"""
    best: dict[str, Chosen]
    """selected trials, by criterion of the regime"""
    trials: Annotated[list[dict[str, Any]], _like(list[_TrialFacts])]
    """facts of each trial: number, params, status, reason, values, epochs, rungs, seconds

    `params` are only the searched ones, `status` is ok, stopped, failed or out-of-memory, `values` are by criterion,
    and `rungs` are pairs [epochs, best value of the guide so far].
    """
    times: dict[str, Seconds]
    """total seconds of all trials"""
    epochs: Count
    """epochs trained by all trials"""
    data: NotRequired[dict[str, str]]
    former: NotRequired[list[_Id]]
    """ids of cells that were selected by earlier records of this tuning, which this record replaces

    Their runs no longer count as tuned results, or as results of a chosen configuration.
    """
