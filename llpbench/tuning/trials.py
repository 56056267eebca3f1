"""Trials of one architecture, trained as one population on the tuning's split. Direct methods are fitted one by one.

Their task has no test rows, and in the coarse-grained regime no labels of validation rows.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from llpbench.core.bags import Task
from llpbench.core.cell import Epoch, Tuning
from llpbench.core.criteria import Criterion
from llpbench.core.global_state import restored
from llpbench.core.text import fault
from llpbench.training.cell_runs import fit_direct
from llpbench.training.cohort import Outcome, Trainee, encoder_factory
from llpbench.training.device import Machine, is_out_of_memory, remove_damaged
from llpbench.training.population import Population
from llpbench.training.pretrained import Pretrained
from llpbench.training.specification import method_of
from llpbench.tuning.search import Search, Trial

_OnEpoch = Callable[[Epoch], None] | None


@dataclass
class Bench:
    """Task and machine for the trials of a tuning."""

    tuning: Tuning
    task: Task
    """validation rows replace its test rows, and labels are dropped unless the regime allows them"""
    machine: Machine
    most: int | None = None
    """largest number of members trained together; None: all"""
    pretrain: Callable[[Sequence[int]], Mapping[int, Pretrained]] | None = None
    on_epoch: _OnEpoch = None
    earlier: list[Trial] = field(default_factory=list)
    """finished trials, with which trials at a rung are compared"""

    def __post_init__(self) -> None:
        validation = self.task.validation
        validation = validation if self.tuning.regime == "fine" else replace(validation, labels=None)
        self.task = replace(self.task, validation=validation, test=validation, train_labels=None, test_bags=None)

    def finish(self, search: Search) -> list[Trial]:
        """Run the missing trials of a search, and return all its trials."""
        self.earlier += search.made
        while asked := search.ask():
            search.tell(self.make(asked))
        return search.made[: self.tuning.trials]

    def make(self, trials: Sequence[Trial]) -> list[Trial]:
        """Train trials and return them with their results."""
        if self.tuning.cell.protocol is None:
            return [self._fit(trial) for trial in trials]
        most = self.most or len(trials)
        groups = [trials[start : start + most] for start in range(0, len(trials), most)]
        return [trial for group in groups for trial in self._train(group)]

    def _halving(self, trials: Sequence[Trial]) -> _Halving:
        """Return a rule that compares with all finished trials; the initial configuration always continues."""
        first = {member for member, trial in enumerate(trials) if trial.number == 0}
        halving = _Halving(self.tuning.guide, self.tuning.rungs, self.tuning.eta, protected=first)
        for trial in self.earlier:
            halving.remember(trial.rungs)
        return halving

    def _train(self, trials: Sequence[Trial]) -> list[Trial]:
        """Train trials together; after a failure, train half as many at once, down to one."""
        clock, halving = time.perf_counter(), self._halving(trials)
        try:
            with restored(f"method {self.tuning.cell.method}"):
                outcomes = self._together(trials, halving)
        except (Exception, SystemExit) as error:  # the latter of a method's code, which is not to end a run
            damaged = self.machine.compiled and remove_damaged(error)
            if len(trials) == 1 and not damaged:
                status = "out-of-memory" if is_out_of_memory(error) else "failed"
                return [replace(trials[0], status=status, reason=fault(error), seconds=time.perf_counter() - clock)]
        else:
            seconds = (time.perf_counter() - clock) / len(trials)
            joined = enumerate(zip(trials, outcomes, strict=True))
            finished = [self._finished(trial, outcome, halving.reached[n], seconds) for n, (trial, outcome) in joined]
            self.earlier += finished
            return finished
        if self.machine.device.type == "cuda":
            torch.cuda.empty_cache()
        half = len(trials) if damaged else (len(trials) + 1) // 2
        return [trial for part in (trials[:half], trials[half:]) if part for trial in self._train(part)]

    def _method(self, trial: Trial) -> Any:
        return method_of(replace(self.tuning.cell, params={**self.tuning.cell.params, **trial.params}))

    def _together(self, trials: Sequence[Trial], halving: _Halving) -> list[Outcome]:
        cell = self.tuning.cell
        assert cell.protocol is not None
        seed = self.tuning.seed
        methods = [*map(self._method, trials)]
        start = self.pretrain([seed])[seed].weights if self.pretrain else None
        members = [Trainee(seed, method, self.task, start) for method in methods]
        population = Population(members, encoder_factory(cell, methods[0].params.dropout), cell.protocol, self.machine)
        return population.train(self.on_epoch, rungs=halving, regimes=(self.tuning.regime,))

    def _fit(self, trial: Trial) -> Trial:
        """Fit a direct method and judge it on the validation rows."""
        clock = time.perf_counter()
        with restored(f"method {self.tuning.cell.method}"):
            result = fit_direct(self._method(trial), self.tuning.seed, self.task)
        values = {name: one["validation"] for name, one in result.results.items()}
        seconds = time.perf_counter() - clock
        return replace(trial, status=result.status, reason=result.reason, values=self._values(values), seconds=seconds)

    def _finished(self, trial: Trial, outcome: Outcome, rungs: Sequence[tuple[int, float]], seconds: float) -> Trial:
        reached = tuple((epochs, value if math.isfinite(value) else None) for epochs, value in rungs)
        trial = replace(trial, epochs=outcome.epochs, rungs=reached, seconds=seconds)
        if outcome.failure:
            return replace(trial, status="failed", reason=outcome.failure)
        values = self._values({name: choice.value for name, choice in outcome.selected.items()})
        return replace(trial, status="stopped" if outcome.stopped else "ok", values=values)

    def _values(self, values: Mapping[str, float | None]) -> dict[str, float]:
        """Return the criteria of the regime that have a value."""
        pairs = ((name, values.get(name)) for name in self.tuning.criteria)
        return {name: float(value) for name, value in pairs if value is not None and math.isfinite(value)}


class _Halving:
    """Rule that stops trials: at each rung, one in `eta` of all trials that have ever reached it continues.

    Li et al. 2020, "A system for massively parallel hyperparameter tuning", algorithm 2, in rounds of a population.
    """

    def __init__(self, criterion: Criterion, rungs: Iterable[int], eta: int, protected: Iterable[int] = ()) -> None:
        """`rungs` are numbers of epochs. `protected` members always continue, but others are compared with them."""
        self.criterion = criterion
        self.rungs = frozenset(rungs)
        self._eta = eta
        self._protected = frozenset(protected)
        self._earlier: dict[int, list[float]] = defaultdict(list)
        self.reached: dict[int, list[tuple[int, float]]] = defaultdict(list)
        """epochs and best value so far at each rung, by member"""

    def remember(self, rungs: Iterable[tuple[int, float | None]]) -> None:
        """Add the values of an earlier trial at its rungs, for comparison."""
        for epochs, value in rungs:
            if value is not None:
                self._earlier[epochs].append(value)

    def leaving(self, epochs: int, values: Mapping[int, float]) -> set[int]:
        """Return the members to stop after `epochs`, given their best values so far; empty if it is not a rung."""
        if epochs not in self.rungs:
            return set()
        for member, value in values.items():
            self.reached[member].append((epochs, value))
        finite = [value for value in values.values() if math.isfinite(value)]
        everyone = sorted([*self._earlier[epochs], *finite], reverse=self.criterion.maximise)
        self._earlier[epochs] += finite
        if not everyone:
            return set(values) - self._protected
        last, sign = everyone[math.ceil(len(everyone) / self._eta) - 1], 1 if self.criterion.maximise else -1
        good = {member for member, value in values.items() if sign * value >= sign * last}  # never NaN
        return set(values) - good - self._protected
