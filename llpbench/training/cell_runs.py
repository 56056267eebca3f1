"""Running one cell: load the data, train or fit, judge on the test rows, and write the records.

Only this module uses the test split, once for each selected epoch and after all training.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from llpbench.core.bags import FloatArray, Rows, Task
from llpbench.core.cell import Average, Cell, Environment, Epoch, Protocol
from llpbench.core.criteria import BOARD_CRITERIA, CRITERIA
from llpbench.core.errors import DataError, HookError
from llpbench.core.files import replace_file
from llpbench.core.global_state import restored
from llpbench.core.method import DirectMethod, Method
from llpbench.core.metrics import holdout_criteria
from llpbench.core.record import CPU_TOTAL, CPU_TRAIN, ROUNDING, CriterionResult, Record, SomeDone, Status
from llpbench.core.registry import ENCODERS, METHODS, load_plugin
from llpbench.core.seeding import generator
from llpbench.core.text import LOG, fault
from llpbench.data.loading import load_table
from llpbench.data.tasks import build_task
from llpbench.training import memory
from llpbench.training.cohort import Outcome, Trainee, chosen_by_all, encoder_factory, populations
from llpbench.training.declaration import course_faults
from llpbench.training.device import (
    Machine,
    compiler_exists,
    is_out_of_memory,
    keep_compiled_code,
    pick_device,
    pick_precision,
    remove_damaged,
)
from llpbench.training.judging import full_verdict, judge
from llpbench.training.population import Population
from llpbench.training.pretrained import Pretrainer
from llpbench.training.specification import method_of
from llpbench.training.stamp import Predicted, SeedResult, cell_facts

_OnEpoch = Callable[[Epoch], None] | None
_Say = Callable[[Epoch | SomeDone], None] | None
_Train = Callable[[dict[int, Task]], list[SeedResult]]

REPAID_AFTER = 1_000_000
"""smallest planned rows x epochs of a member, about 2,000 steps of 512 rows. Compiling SAINT's steps took one to two
minutes on a CPU of 2021 (three to five if a loss takes derivatives itself). It saves about 0.1 seconds a step."""

_NOTHING_CHOSEN = (
    "no criterion could select an epoch, because none was ever a number. Validation needs rows of two classes, or bags "
    "whose counts are known, and predictions must be numbers"
)


def run_cell(cell: Cell, seeds: Sequence[int], environment: Environment, say: _Say = None) -> list[Record]:
    """Train and judge all seeds of a cell; return one record for each seed.

    Seeds train as one population, or several; direct methods are fitted one by one. `say` gets the epochs, and the
    records of each population but the last as soon as it is done. Errors of a seed become records with status
    `failed` or `out-of-memory`. Only `KeyboardInterrupt` and `LLPBenchError` (bad input of all seeds) are raised.
    """
    with at_work(cell, environment) as machine:
        with restored(f"method {cell.method}"):
            method = method_of(cell)
        facts = cell_facts(cell)  # before training, which later edits of the sources do not affect
        clock = time.perf_counter()
        tasks, unloaded = dict[int, Task](), list[SeedResult]()
        for seed in seeds:
            try:
                tasks[seed] = make_task(cell, seed, method.supervision, environment.data_dir)
            except DataError:  # of all seeds
                raise
            except (Exception, SystemExit) as error:  # such as of a bagging that a plugin registers
                unloaded.append(SeedResult(seed, "failed", fault(error), members=0))
        data_seconds = (time.perf_counter() - clock) / len(seeds)
        parts: Iterable[list[SeedResult]] = ()
        if isinstance(method, DirectMethod):
            parts = (_fit(cell, seed, task) for seed, task in tasks.items())
        elif tasks:
            keep = environment.predictions is not None
            machine, most, pretrain = prepared(cell, tasks, environment, machine, say)
            train = partial(_train_together, cell, method, machine, say, pretrain, keep)
            most = most and max(most // cell.ensemble, 1)
            groups = populations(tasks, (cell.protocol or Protocol()).bags_per_step, most)
            parts = map(partial(_train_population, cell, machine, train), groups)
        shared = {**facts, "hardware": machine.hardware(environment.threads, cell.precision)}
        records: list[Record] = []
        for results in chain([unloaded], parts):
            done = [each.record(cell, tasks.get(each.seed), data_seconds, shared) for each in results]
            for each, record in zip(results, done, strict=True):
                if environment.predictions is not None and each.status == "ok":
                    classes = load_table(cell.dataset, environment.data_dir).classes
                    file = Path(environment.predictions) / f"{record['run']}.parquet"
                    _keep_predictions(file, each.predicted, tasks[each.seed], classes, record["finished"])
            records += done
            if say is not None and done and len(records) < len(seeds):
                say(SomeDone(done))
        return records


def _fit(cell: Cell, seed: int, task: Task) -> list[SeedResult]:
    Machine().reset_peak_memory()
    with restored(f"method {cell.method}"):
        # a new object: state of one seed would leak, since its training rows are test rows of another
        return [fit_direct(method_of(cell), seed, task)]


@contextmanager
def at_work(cell: Cell, environment: Environment) -> Iterator[Machine]:
    """Load plugins and limit threads. Yield the machine on which a cell's populations train.

    Direct methods are fitted on the CPU. Raises `LLPBenchError` if the device or precision is not available.
    """
    for plugin in environment.plugins:
        load_plugin(plugin)
    memory.keep_freed()
    keep_compiled_code()
    device = pick_device("cpu" if cell.protocol is None else environment.device)
    precision, recorded = pick_precision(cell.precision, device), device.type == "cuda"
    with limit_threads(environment.threads):
        yield Machine(device=device, compiled=bool(environment.compile), precision=precision, recorded=recorded)


@contextmanager
def limit_threads(number: int) -> Iterator[None]:
    """Limit the threads of torch, numpy and scikit-learn, so that all executors give the same results."""
    import sklearn.ensemble  # noqa: F401  (only loaded libraries can be limited)
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(limits=number):
            yield
    finally:
        torch.set_num_threads(before)


def prepared(
    cell: Cell, tasks: dict[int, Task], environment: Environment, machine: Machine, on_epoch: _OnEpoch
) -> tuple[Machine, int | None, Pretrainer | None]:
    """Return the machine (compiled if that pays off), the most members together, and the source of pretrained weights.

    None: all members; encoders start from random weights.
    """
    if machine.device.type == "cpu":
        rows = min(int(task.train.sizes.sum()) for task in tasks.values())  # equal, except with some baggings
        machine = replace(machine, compiled=_compiles_on_cpu(cell, environment, rows))
    most = _most_together(cell, machine)
    if cell.pretraining == "none":
        return machine, most, None
    if METHODS.get(cell.method).supervision != "bags":  # pretraining uses bags, whatever the method's supervision
        tasks = {seed: make_task(cell, seed, "bags", environment.data_dir) for seed in tasks}
    folder = Path(environment.pretrained) if environment.pretrained else None
    return machine, most, Pretrainer(cell, tasks, folder, machine, on_epoch)


def _compiles_on_cpu(cell: Cell, environment: Environment, rows: int) -> bool:
    """Return whether a cell's steps are compiled on a CPU: as requested, or if it pays off for a member's `rows`."""
    if environment.compile is not None:
        return environment.compile
    if cell.encoder is None or not ENCODERS.get(cell.encoder).compiles or not METHODS.get(cell.method).compiles:
        return False
    return (cell.protocol or Protocol()).epochs * rows >= REPAID_AFTER and compiler_exists()


def _most_together(cell: Cell, machine: Machine) -> int | None:
    """Return the largest number of members of a cell that train together; None: all.

    A deep encoder compiled for a CPU trains one member at a time. Three members of SAINT take as long together as in
    turn, and need more memory. Each change in their number would need another compilation.
    """
    if not METHODS.get(cell.method).stackable:
        return 1
    deep = cell.encoder is not None and ENCODERS.get(cell.encoder).compiles
    return 1 if deep and machine.compiled and machine.device.type == "cpu" else None


def make_task(cell: Cell, seed: int, supervision: str, data_dir: str | None) -> Task:
    """Return the data of one seed of a cell."""
    from llpbench.data.splits import assign_bags

    with restored(f"dataset {cell.dataset} or bagging {cell.bagging}"):
        table = load_table(cell.dataset, data_dir)
        assignment = assign_bags(table, cell.bagging, cell.bag_size, seed, cell.max_bags)
    bags_per_step = (cell.protocol or Protocol()).bags_per_step
    used = assignment.with_validation_in_training() if cell.average else assignment
    task = build_task(table, used, supervision=supervision, bags_per_step=bags_per_step, numbers=cell.numbers)
    return replace(task, manifest=assignment.manifest, moved=len(used.train) - len(assignment.train))


def _train_population(cell: Cell, machine: Machine, train: _Train, tasks: dict[int, Task]) -> list[SeedResult]:
    """Train some seeds together.

    Out of memory: retry with half as many seeds at once, down to one. Damaged compiled library: retry without it. Any
    other error: retry each seed alone, so that only the seed that causes it fails.
    """
    try:
        with restored(f"method {cell.method}"):
            return train(tasks)
    except (Exception, SystemExit) as error:  # SystemExit: a method's code must not end a run
        out_of_memory = is_out_of_memory(error)
        damaged = machine.compiled and remove_damaged(error)
        if len(tasks) == 1 and not damaged:
            status: Status = "out-of-memory" if out_of_memory else "failed"
            reason = "out of memory with one member alone: " * out_of_memory + fault(error)
            return [SeedResult(seed, status, reason) for seed in tasks]
    # not in the handler, where the traceback would keep the tensors alive
    if machine.device.type == "cuda":
        torch.cuda.empty_cache()
    assert cell.protocol is not None
    most = len(tasks) if damaged else (len(tasks) + 1) // 2 if out_of_memory else 1
    results = []
    for part in populations(tasks, cell.protocol.bags_per_step, most):
        results += _train_population(cell, machine, train, part)
    return results


def _train_together(
    cell: Cell,
    method: Method,
    machine: Machine,
    on_epoch: _OnEpoch,
    pretrain: Pretrainer | None,
    keep: bool,
    tasks: dict[int, Task],
) -> list[SeedResult]:
    """Train some seeds together and judge each; with `keep` also return their predictions."""
    assert cell.protocol is not None
    if found := [*course_faults(method)]:
        raise ValueError("; ".join(found))
    started = pretrain(list(tasks)) if pretrain else {}
    machine.reset_peak_memory()
    clock, cpu = time.perf_counter(), time.process_time()
    members = [
        Trainee(seed, method, task, started[seed].weights if started else None, copy)
        for seed, task in tasks.items()
        for copy in range(cell.ensemble)
    ]
    average = Average.of(cell.average) if cell.average else None
    encoder = encoder_factory(cell, method.params.dropout)
    population = Population(members, encoder, cell.protocol, machine, average=average)
    outcomes = population.train(on_epoch)
    results = []
    for place, seed in enumerate(tasks):
        numbers = range(place * cell.ensemble, (place + 1) * cell.ensemble)
        members_of_seed = outcomes[numbers.start : numbers.stop]
        epochs, parameters = max(each.epochs for each in members_of_seed), population.stack.theta.shape[1]
        result = SeedResult(seed, epochs=epochs, parameters=parameters, members=len(members))
        if started:
            result.times["pretraining"] = started[seed].seconds
        failures = [outcome.failure for outcome in members_of_seed if outcome.failure]
        if not failures and average is None and not chosen_by_all(members_of_seed):
            failures = [_NOTHING_CHOSEN]
        if failures:
            result.status, result.reason = "failed", failures[0]
        else:
            result.results, result.predicted = judge(population, numbers, keep=keep)
            result.curves = _curves(members_of_seed)
        results.append(result)
    shared = population.seconds | {"total": time.perf_counter() - clock, CPU_TOTAL: time.process_time() - cpu}
    if machine.device.type != "cpu":
        shared = {name: seconds for name, seconds in shared.items() if name not in (CPU_TRAIN, CPU_TOTAL)}
    for result in results:
        result.times |= {name: seconds / len(tasks) for name, seconds in shared.items()}
        result.memory_mb = machine.peak_memory_mb()
    return results


def _curves(outcomes: Sequence[Outcome]) -> dict[str, list[float | None]]:
    """Return each leaderboard criterion's curve in the last stage, to four digits, None unless finite.

    For an ensemble it is the mean curve, for the epochs that all members have trained.
    """
    found = {}
    for name in (name for name in BOARD_CRITERIA if name in chosen_by_all(outcomes)):
        curves = [outcome.selected[name].curve for outcome in outcomes]
        mean = np.mean([curve[: min(map(len, curves))] for curve in curves], axis=0).tolist()
        found[name] = [round(value, 4) if math.isfinite(value) else None for value in mean]
    return found


def fit_direct(method: DirectMethod, seed: int, task: Task) -> SeedResult:
    """Fit a direct method and judge it. It has no epochs, so all criteria select the same predictor.

    A control, fitted to the labels of validation rows, has results of fine-grained criteria only, without their values.
    """
    clock, cpu = time.perf_counter(), time.process_time()
    try:
        known = deepcopy(task.train.where_known())  # which the method may change, as its predictor may change rows
        clock, cpu = time.perf_counter(), time.process_time()
        predictor = method.fit(known, task.schema, generator(seed, "training"))
        cpu_fitted = time.process_time()
        if not callable(predictor):
            what = f"must return a predictor, a function of rows, got {type(predictor).__name__}"
            raise HookError.of(method, "fit", what)
        fitted = time.perf_counter()

        def proba_of(rows: Rows) -> FloatArray:
            predicted = predictor(deepcopy(rows))
            try:
                return probabilities(predicted, len(rows.numeric), task.schema.classes)
            except ValueError as error:
                raise HookError.of(method, "fit", f"must return a predictor of probabilities: {error}") from None

        proba = [proba_of(rows) for rows in (task.validation.rows, task.test.rows)]
        validation: dict[str, float | None] = {**holdout_criteria(proba[0], task.validation)}
        if method.supervision == "validation":
            validation = {name: None for name in validation if CRITERIA[name].regime == "fine"}
        of_train = proba_of(task.bags.rows) if task.test_bags is not None else proba[1][:0]
        evaluation = full_verdict(task, proba[1], of_train)
    except (Exception, SystemExit) as error:  # SystemExit: a method's code must not end a run
        status: Status = "out-of-memory" if is_out_of_memory(error) else "failed"
        return SeedResult(seed, status, fault(error), times={"total": time.perf_counter() - clock})
    end = time.perf_counter()
    return SeedResult(
        seed,
        results={
            name: CriterionResult(epoch=None, validation=validation[name], diagnostics={}, **evaluation)
            for name in validation
        },
        times={
            "train": fitted - clock,
            "total": end - clock,
            CPU_TRAIN: cpu_fitted - cpu,
            CPU_TOTAL: time.process_time() - cpu,
        },
        memory_mb=Machine().peak_memory_mb(),
        predicted={name: {"validation": proba[0], "test": proba[1]} for name in validation},
    )


def probabilities(proba: object, rows: int, classes: int) -> FloatArray:
    """Return predictions unchanged. Raises `ValueError` unless they are an array [rows, classes] in [0, 1]."""
    expected = (rows, classes)
    if not isinstance(proba, np.ndarray):
        raise ValueError(f"a predictor must return a numpy array of shape {expected}, got {type(proba).__name__}")
    if proba.shape != expected:
        raise ValueError(f"predictions must be of shape {expected}, got shape {proba.shape}")
    if not np.isfinite(proba).all():
        wrong = int((~np.isfinite(proba)).any(axis=1).sum())
        raise ValueError(f"predictions must be finite, but those of {wrong} of {len(proba)} rows are not")
    if proba.min() < -ROUNDING or proba.max() > 1 + ROUNDING:
        raise ValueError(f"predictions must be in [0, 1], got from {proba.min():g} to {proba.max():g}")
    return proba


def _keep_predictions(file: Path, predicted: Predicted, task: Task, classes: Sequence[str], finished: str) -> None:
    """Write a parquet file with one row for each test row of a task, and each validation row that was not trained on.

    Columns: `row` (index in the dataset, from 0), `split`, `label`, and `CRITERION/CLASS`, float32. The attribute
    `finished` is that of the record. If the file cannot be written, only logs this: the result must not be lost.
    """
    from pandas import Categorical, DataFrame, concat

    parts = []
    for part, holdout in (("validation", task.validation), ("test", task.test)):
        if any(part not in of for of in predicted.values()):
            continue
        number = len(holdout.rows.numeric)
        columns = {
            "row": np.arange(number) if holdout.numbers is None else holdout.numbers,
            "split": Categorical([part] * number, categories=["validation", "test"]),
        }
        if holdout.labels is not None:
            columns["label"] = Categorical.from_codes(holdout.labels, categories=list(classes))
        for criterion, of in predicted.items():
            of_class = zip(classes, of[part].T, strict=True)
            columns |= {f"{criterion}/{name}": proba.astype(np.float32) for name, proba in of_class}
        parts.append(DataFrame(columns))
    content, frame = io.BytesIO(), concat(parts, ignore_index=True)
    frame.attrs["finished"] = finished
    frame.to_parquet(content, compression="zstd")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, content.getvalue())
    except OSError as error:
        LOG.warning("%s cannot be written: %s. Make room, or leave out --save-predictions.", file, error.strerror)
