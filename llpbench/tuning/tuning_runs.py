"""A tuning from beginning to end: one round after the other, and the journal's line with the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import optuna

from llpbench.core.cell import Environment, Epoch, Tuning
from llpbench.core.criteria import CRITERIA
from llpbench.core.method import DirectMethod
from llpbench.core.record import SCHEMA, Chosen, Status, TuningRecord
from llpbench.core.registry import METHODS
from llpbench.training.cell_runs import at_work, make_task, prepared
from llpbench.training.stamp import cell_facts
from llpbench.tuning.search import Search, Trial
from llpbench.tuning.trials import Bench


def run_tuning(
    tuning: Tuning, environment: Environment, on_epoch: Callable[[Epoch], None] | None = None, instead: str = ""
) -> TuningRecord:
    """Run the missing trials, and return the configuration that each criterion chooses.

    A search that other code or data began starts over. So does the search that was finished at `instead`. An error in a
    trial makes it a failed trial. Raises `LLPBenchError` for bad input.
    """
    folder = Path(environment.tuning) if environment.tuning else None
    with at_work(tuning.cell, environment) as machine:
        facts = cell_facts(tuning.cell)  # before training, which later edits of the files do not affect
        cell, declared = tuning.cell, METHODS.get(tuning.cell.method)
        whole = make_task(cell, tuning.seed, declared.supervision, environment.data_dir)
        bench = Bench(tuning, whole, machine, on_epoch=on_epoch)
        if not issubclass(declared, DirectMethod):
            network = prepared(cell, {tuning.seed: whole}, environment, machine, on_epoch)
            bench.machine, bench.most, bench.pretrain = network
        machine, task = bench.machine, bench.task
        facts["data"] = {"fingerprint": task.fingerprint, "manifest": task.manifest}
        code = json.dumps([facts["versions"], facts["numerics"], [*facts["data"].values()]], sort_keys=True)
        machine.reset_peak_memory()
        trials = bench.finish(Search(tuning, folder, code, instead))
    hardware, memory = machine.hardware(environment.threads, tuning.cell.precision), machine.peak_memory_mb()
    facts |= {"hardware": hardware, "memory_mb": None if memory is None else round(memory, 1)}
    return tuning_record(tuning, trials, facts)


def tuning_record(
    tuning: Tuning, trials: Sequence[Trial], facts: dict[str, Any], reason: str = "", status: Status = "failed"
) -> TuningRecord:
    """Return the journal's line. `status` and `reason` are used if no trial can be chosen."""
    best = choices(tuning, trials)
    reasons = [f"trial {trial.number}: {trial.reason}" for trial in trials if trial.reason]
    record: TuningRecord = {
        "schema": SCHEMA,
        "tuning": tuning.id,
        "spec": tuning.spec,
        "status": "ok" if best else status,
        "reason": "" if best else next(filter(None, [reason, *reasons, "no trial gave a value"])),
        "best": best,
        "trials": [asdict(t) | {"rungs": [*map(list, t.rungs)], "seconds": round(t.seconds, 4)} for t in trials],
        "times": {"total": round(sum(trial.seconds for trial in trials), 4)},
        "epochs": sum(trial.epochs for trial in trials),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts,  # type: ignore[typeddict-item]
    }
    record["libraries"] = {**record["libraries"], "optuna": optuna.__version__}
    return record


def choices(tuning: Tuning, trials: Sequence[Trial]) -> dict[str, Chosen]:
    """Return the trial that each criterion of the regime chooses, if there is one."""
    return {name: choice for name in tuning.criteria if (choice := _best(tuning, trials, name)) is not None}


def _best(tuning: Tuning, trials: Sequence[Trial], criterion: str) -> Chosen | None:
    """Return the trial with the best value among those not stopped; the first of equals."""
    found = [trial for trial in trials if trial.status == "ok" and criterion in trial.values]
    if not found:
        return None
    best = (max if CRITERIA[criterion].maximise else min)(found, key=lambda trial: trial.values[criterion])
    cell = replace(tuning.cell, params={**tuning.cell.params, **best.params})
    return Chosen(
        trial=best.number,
        cell=cell.id,
        params=dict(cell.spec["params"]),
        value=best.values[criterion],
        default=trials[0].values.get(criterion),
    )
