"""A search in rounds, stored after each round, and the same after any interruption.

A round consists of trials of one architecture: the sampler proposes one trial freely, and others with the same
architecture. Each round has a new study of Optuna with all finished trials, and a sampler with its own seed. So an
interrupted round is proposed again, with the same trials.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from llpbench.core.cell import Tuning
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import explained_failure, replace_file
from llpbench.core.global_state import quiet
from llpbench.core.seeding import sequence
from llpbench.tuning.space import Space, architecture

_STARTUP = 10
"""number of random trials before TPE begins"""


@dataclass(frozen=True)
class Trial:
    """One configuration of a search, and its outcome."""

    number: int
    """number of the trial; 0 is the initial configuration"""
    params: Mapping[str, Any]
    """searched hyperparameters; all others are those of the cell"""
    status: str
    """`ok`, `stopped` at a rung, `failed` or `out-of-memory`"""
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    """best value over all epochs, by criterion of the regime"""
    epochs: int = 0
    """trained epochs, in all stages"""
    rungs: tuple[tuple[int, float | None], ...] = ()
    """number of epochs and the guide's best value so far, at each rung that the trial reached"""
    seconds: float = 0.0
    """time of the trials trained together, divided by their number"""


class _Made(NamedTuple):
    """A finished trial."""

    trial: dict[str, Any]
    proposed: dict[str, Any]
    """Optuna's hyperparameters, which are not rounded"""


class Search:
    """A search that is stored after each round. The lock of its run's journal keeps other processes away from it."""

    def __init__(self, tuning: Tuning, folder: Path | None = None, code: str = "", instead: str = "") -> None:
        """Continue the search stored in `folder`, or begin it (None: in memory).

        It starts over if other `code` began it, or if its `instead` differs from a given one. Raises
        `LLPBenchError` if its file is damaged or cannot be written.
        """
        self.tuning = tuning
        self._space = Space(tuning.space, tuning.cell.params)
        self._path, self._origin = None if folder is None else folder / f"{tuning.search_id}.json", (code, instead)
        self._rounds: list[list[_Made]] = []
        self._asked: list[optuna.Trial] = []
        if self._path is None:
            return
        with explained_failure(f"search {str(self._path)!r} cannot be saved"), suppress(FileNotFoundError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            content = self._path.read_bytes()
            try:
                stored = json.loads(content)
                if stored["code"] == code and instead in ("", stored["instead"]):
                    self._origin = code, stored["instead"]
                    self._rounds = [[_Made(*made) for made in together] for together in stored["rounds"]]
                    self.made  # noqa: B018  (raises)
            except (ValueError, KeyError, TypeError) as error:
                told = f"search {str(self._path)!r} is damaged"
                raise LLPBenchError(f"{told}. Delete it to start the search over.") from error

    @property
    def made(self) -> list[Trial]:
        """Finished trials, in order."""
        return [_trial(made.trial) for together in self._rounds for made in together]

    def ask(self) -> list[Trial]:
        """Return the trials of the next round; empty if the search has all its trials.

        A round is always complete, so that a longer search continues a shorter one.
        """
        first = len(self.made)
        self._asked = []
        asked: list[Trial] = []
        with quiet():
            study = self._study()
            for number in range(first, first + self.tuning.together) if first < self.tuning.trials else ():
                if number == 0:
                    study.enqueue_trial(self._space.proposal(self._space.ranges, {}))
                elif asked:
                    same = architecture(self.tuning.cell.method, self._space.ranges, asked[0].params)
                    study.enqueue_trial(self._space.proposal(same, asked[0].params))
                trial = study.ask()
                self._asked.append(trial)
                params = self._space.suggest(trial)
                if number == 0:  # the initial configuration is not rounded
                    params = {name: self.tuning.cell.params[name] for name in params}
                asked.append(Trial(number, params, "asked"))
        return asked

    def tell(self, results: Sequence[Trial]) -> None:
        """Store the results of the last round returned by `ask`. Raises `LLPBenchError` if that is impossible."""
        told = zip(results, self._asked, strict=True)
        self._rounds.append([_Made(asdict(trial), proposed.params) for trial, proposed in told])
        if self._path is not None:
            code, instead = self._origin
            with explained_failure(f"search {str(self._path)!r} cannot be saved"):
                replace_file(self._path, json.dumps({"code": code, "instead": instead, "rounds": self._rounds}))

    def _study(self) -> optuna.Study:
        """Return a study in memory with all finished trials."""
        purpose = ("tuning", self.tuning.search_id, len(self._rounds))
        seed = int(sequence(self.tuning.seed, *purpose).generate_state(1)[0])
        sampler: optuna.samplers.BaseSampler = optuna.samplers.RandomSampler(seed=seed)
        if self.tuning.sampler != "random":
            sampler = optuna.samplers.TPESampler(
                n_startup_trials=_STARTUP,
                n_ei_candidates=24,
                multivariate=False,
                group=False,
                constant_liar=True,
                seed=seed,
            )
        study = optuna.create_study(direction="maximize" if self.tuning.guide.maximise else "minimize", sampler=sampler)
        study.add_trials([self._known(made) for together in self._rounds for made in together])
        return study

    def _known(self, made: _Made) -> FrozenTrial:
        """Return a finished trial in Optuna's form, with its values by epoch if it was stopped."""
        trial = _trial(made.trial)
        value, reached = trial.values.get(self.tuning.guide.name), {}
        state = TrialState.COMPLETE if trial.status == "ok" and value is not None else TrialState.FAIL
        if trial.status == "stopped":
            reached = {epochs: best for epochs, best in trial.rungs if best is not None}
            state, value = TrialState.PRUNED, reached[max(reached)] if reached else None
        return create_trial(
            state=state,
            value=None if state is TrialState.FAIL else value,
            params=made.proposed,
            distributions={name: _distribution(self._space.ranges[name]) for name in made.proposed},
            intermediate_values=reached,
        )


def _distribution(part: Any) -> FloatDistribution | CategoricalDistribution:
    """Return Optuna's form of a search range, as `space.suggest` uses it."""
    if "choices" in part:
        return CategoricalDistribution(range(len(part["choices"])))
    return FloatDistribution(part["low"], part["high"], log=part.get("log", False))


def _trial(values: dict[str, Any]) -> Trial:
    return Trial(**{**values, "rungs": tuple((int(epochs), value) for epochs, value in values["rungs"])})
