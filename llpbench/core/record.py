"""The result of one run, as one JSON object: a line of the journal.

A *cell* is a full specification without a seed; a *run* is one seed of a cell. NaN is written as null.
"""

# no `from __future__ import annotations`: NotRequired would go unnoticed
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict  # pydantic reads that of `typing` from Python 3.12 on

from llpbench.core.criteria import Regime
from llpbench.core.fields import (
    Count,
    CriterionValue,
    Id,
    MetricValue,
    Moment,
    Name,
    Named,
    Positive,
    Real,
    Seconds,
    Shaped,
    Size,
)

SCHEMA = 3
"""Schema of the journal's lines (`results/packing.py`). Lines of schema 2 are read, others are refused."""

PROPORTION_BINS = 20

Status = Literal["ok", "failed", "out-of-memory", "timed-out"]


class ProtocolFacts(TypedDict):
    """A cell's protocol (`cell.Protocol`)."""

    epochs: Positive
    patience: Positive
    bags_per_step: Positive


class CellFacts(TypedDict):
    """A cell's specification (`cell.Cell`)."""

    method: Name
    dataset: Name
    bagging: str
    """any text: names of columns are part of it"""
    bag_size: Count
    encoder: Name | None
    params: dict[str, Any]
    encoder_params: dict[str, Any]
    pretraining: Name
    pretraining_params: dict[str, Any]
    protocol: ProtocolFacts | None
    max_bags: NotRequired[Positive]
    ensemble: NotRequired[Positive]
    precision: NotRequired[Name]
    numbers: NotRequired[Name]


class SearchFacts(TypedDict):
    """The specification of a search (`tunings.Tuning`)."""

    cell: CellFacts
    regime: Regime
    trials: Positive
    space: dict[str, dict[str, Any]]
    sampler: Name
    seed: Count
    together: Positive
    eta: Count


class MethodFacts(TypedDict):
    """What a method's declaration says."""

    kind: Literal["neural", "direct"]
    role: Literal["floor", "ceiling", ""]
    reference: str | None
    changed: dict[str, Any]


class DatasetFacts(TypedDict):
    """What a dataset's declaration says."""

    code: str
    licence: NotRequired[str]
    rows: NotRequired[Count | None]
    numeric: NotRequired[Count | None]
    categorical: NotRequired[Count | None]
    classes: NotRequired[Count | None]


class BagFacts(TypedDict):
    """The bags of a run."""

    number: Count
    sizes: Annotated[list[Size], Len(3, 3)]
    validation: Count
    test: Count
    histograms: list[Annotated[list[Count], Len(PROPORTION_BINS, PROPORTION_BINS)]]
    spread: NotRequired[Size | None]
    separation: NotRequired[Size | None]
    dropped: NotRequired[Count]
    pooled: NotRequired[Count]


class CodeFacts(TypedDict):
    """The llpbench that made a run."""

    version: str
    commit: str | None
    dirty: bool | None


class HardwareFacts(TypedDict):
    """What a run was computed on."""

    device: str
    name: str
    threads: Count
    compiled: bool
    precision: str
    shared: NotRequired[bool | None]


class StampFacts(TypedDict):
    """A renewed stamp."""

    when: Moment
    commit: NotRequired[str | None]
    dirty: NotRequired[bool | None]
    sample: NotRequired[Count]
    reference: NotRequired[dict[str, Any]]


class TrialFacts(TypedDict):
    """One trial of a search (`tunings.Trial`)."""

    number: Count
    params: dict[str, Any]
    status: Literal[Status, "stopped"]
    reason: str
    values: Annotated[dict[str, Real], Named(CriterionValue)]
    epochs: Count
    rungs: list[Annotated[list[Real | None], Len(2, 2)]]
    seconds: Seconds


_BY_CRITERION = Named({name: list[kind] for name, kind in CriterionValue.items()})  # type: ignore[valid-type]

Curves = Annotated[dict[str, list[Real | None]], _BY_CRITERION]
"""by criterion, a value for each epoch"""


class Judged(TypedDict):
    """What predictions are worth on the test rows."""

    test: Annotated[dict[str, Real | None], Named(MetricValue)]
    """test metrics, by name (`criteria.METRICS`)"""
    reliability: NotRequired[list[Annotated[list[Real], Len(3, 3)]]]
    """of bins of the predicted probability: rows, mean probability, and how often it came true
    (`metrics.reliability`); absent without labels"""


class CriterionResult(Judged):
    """What one validation criterion chose, and how that did on the test rows."""

    epoch: Count | None
    """zero-based best epoch; null for a method without epochs"""
    validation: Real | None
    """the criterion's value there"""
    diagnostics: dict[str, Real | None]
    """what else is known of the method there, by name (`training/diagnostics.py`), such as its class awareness score,
    and the weights that it changes in the course of training (`Reports.schedules`)"""


class Record(TypedDict):
    """One line of the journal."""

    schema: int
    run: str
    """`<cell>-<seed>`"""
    cell: Id
    """hash of `spec`: never of order, paths, hardware or code"""
    seed: Count
    spec: Annotated[dict[str, Any], Shaped(CellFacts)]
    """the cell, canonical: method, params, dataset, bagging, bag_size, encoder, pretraining, protocol and,
    where they are not all bags, one member, float32 and z-scores, max_bags, ensemble, precision and numbers"""
    method: Annotated[dict[str, Any], Shaped(MethodFacts)]
    """what the method's declaration says: kind (neural or direct), role (floor, ceiling or ""), reference; `changed`:
    the hyperparameters that differ from their defaults (`training.specification.changed`)"""
    dataset: Annotated[dict[str, Any], Shaped(DatasetFacts)]
    """what the dataset's declaration says: code ("" if it has none), licence, and as far as it is declared or known
    rows, numeric, categorical (numbers of features), classes; null where not"""
    status: Status
    reason: str
    """why the run failed, in one line, with the epoch; "" if it did not"""
    results: dict[str, CriterionResult]
    """by criterion (`criteria.CRITERIA`); empty unless status is ok. Without labels of validation rows it has no
    fine-grained criterion"""
    curves: Curves
    """by criterion (`criteria.BOARD_CRITERIA`): its value on the validation rows after each epoch of the last stage, to
    four digits; empty for direct methods, failed runs, and where they were not kept"""
    earlier_curves: NotRequired[dict[str, Curves]]
    """the same of the stages before the last, by their names, in order; of those that are judged, so absent where none
    of them is. Where stages are run for each validation regime, what a criterion saw in that of its own"""
    epochs: Count
    """epochs trained, over all stages (and both validation regimes, where stages are run for each); 0 without epochs"""
    parameters: Count
    """trainable numbers of one member"""
    times: dict[str, Seconds]
    """seconds: data, warm-up (the first step of every stage and population size, compilation included), train (all
    other steps), evaluate, predict (the test rows, once), test (predictions at every best epoch and their judgement),
    `stage NAME` for each stage, total; the population's own, divided by its members. `pretraining` is what its
    pretraining took when it was computed, for whichever run, and not part of total. What was not measured is absent"""
    memory_mb: Size | None
    """peak memory of the population: of the GPU, or on CPU of the process while it trained, with what it imports; null
    where the platform does not tell"""
    members: Count
    """members trained together"""
    data: dict[str, str]
    """fingerprint (hash of the table) and manifest (hash of every split and bag); empty if a run failed before"""
    bags: Annotated[dict[str, Any], Shaped(BagFacts, or_empty=True)]
    """`number` of training bags, their `sizes` (least, median, most), `validation` and `test`: numbers of bags there,
    and `histograms`: for each class how many training bags have a proportion in each of `PROPORTION_BINS` equal bins of
    [0, 1]; empty if a run failed before. How bags differ (`training/bag_facts.py`), null where there is one alone:
    `spread` of their proportions and `separation` of their features. Where sizes of bags are limited, the training rows
    in bags beyond them that were `dropped`, and `pooled` in bags of such rows"""
    sources: dict[str, str | None]
    """hash of the source (`source_hash.py`) of method, dataset, bagging and encoder (null where there is none): a run
    of other code is stale"""
    numerics: Count
    """version of what the engine computes (`core.provenance.NUMERICS`)"""
    restamped: NotRequired[Annotated[dict[str, Any], Shaped(StampFacts)]]
    """where `sources` and `numerics` were renewed without running again (`llpbench restamp`): `when`, `commit` and
    whether the code was `dirty`, and the `sample`: number of runs made again then, with equal results; `reference`,
    where some were compared with what the code before gives on the same machine: their number, and its commits"""
    code: Annotated[dict[str, Any], Shaped(CodeFacts)]
    """version, commit, dirty"""
    libraries: dict[str, str]
    hardware: Annotated[dict[str, Any], Shaped(HardwareFacts, or_empty=True)]
    """device, name, threads, compiled, precision; `shared`: whether others used the device at the end of the run, null
    if that is unknown"""
    finished: Moment
    """UTC, ISO 8601"""


class Chosen(TypedDict):
    """What one validation criterion chose of the trials of a tuning."""

    trial: Count
    """its number; 0 is the configuration that the search started from"""
    cell: Id
    """id of the cell with this configuration: its runs are the tuned results, under this criterion alone"""
    params: dict[str, Any]
    """every hyperparameter of the method"""
    value: Real
    """the criterion on the validation rows of the tuning's own split"""
    default: Real | None
    """the same of trial 0"""


class TuningRecord(TypedDict):
    """One line of the journal: what a search for hyperparameters found (`core/tuning_spec.py`)."""

    schema: int
    tuning: Id
    """hash of `spec`"""
    spec: Annotated[dict[str, Any], Shaped(SearchFacts)]
    """the search, canonical: cell, regime, trials, space, sampler, seed, together, eta"""
    method: Annotated[dict[str, Any], Shaped(MethodFacts)]
    dataset: Annotated[dict[str, Any], Shaped(DatasetFacts)]
    """these as in a run's record"""
    status: Status
    """failed only if no trial could be chosen"""
    reason: str
    best: dict[str, Chosen]
    """by criterion of the regime"""
    trials: Annotated[list[dict[str, Any]], Shaped(list[TrialFacts])]
    """number, params (those that were searched), status (ok, stopped, failed, out-of-memory), reason, values (by
    criterion), epochs, rungs ([epochs, best value of the guide so far]), seconds"""
    times: dict[str, Seconds]
    """seconds: total, of all trials"""
    epochs: Count
    """trained by all trials"""
    memory_mb: Size | None
    sources: dict[str, str | None]
    numerics: Count
    code: Annotated[dict[str, Any], Shaped(CodeFacts)]
    libraries: dict[str, str]
    hardware: Annotated[dict[str, Any], Shaped(HardwareFacts, or_empty=True)]
    finished: Moment
    restamped: NotRequired[Annotated[dict[str, Any], Shaped(StampFacts)]]
    """these as in a run's record"""
    former: NotRequired[list[Id]]
    """ids of cells that were chosen by records of this tuning whose place this one has taken: their runs are results of
    a search that counts no more, and of nothing that anybody has set"""
