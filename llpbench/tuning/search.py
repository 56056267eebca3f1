"""A search by Optuna, in rounds. It is stored in Optuna's own journal file and is the same after any interruption.

A round consists of trials of one architecture: the sampler proposes one trial freely, and others with the same
architecture. Each round has a new sampler with its own seed. The results of a round are stored before Optuna gets them.
An interrupted round is proposed again, with the same trials.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import optuna
from filelock import FileLock, Timeout
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState, create_trial

from llpbench.core.errors import LLPBenchError
from llpbench.core.seeding import sequence
from llpbench.core.tuning_spec import Trial, Tuning
from llpbench.tuning.space import architecture, proposal, suggest, with_default

_ROUND = "round "
_CODE = "code"
_INSTEAD = "instead"
_NUMBER = "trial"
"""names of Optuna's attributes. Of the study: results of a round, and the code that began it; of a trial: our number"""
_STARTUP = 10
"""number of random trials before TPE begins"""


class Search:
    """A search that this process has opened. No other process can open it."""

    def __init__(self, tuning: Tuning, storage: BaseStorage, code: str = "", instead: str = "") -> None:
        """Continue the search in `storage`; if there is none, begin it and store `code` and `instead`."""
        self.tuning = tuning
        self._space = with_default(tuning.space, tuning.cell.params)
        with _quiet():
            self._study = optuna.create_study(
                storage=storage,
                study_name=tuning.search_id,
                direction="maximize" if tuning.guide.maximise else "minimize",
                load_if_exists=True,
            )
            if _CODE not in self._study.user_attrs:
                self._study.set_user_attr(_INSTEAD, instead)
                self._study.set_user_attr(_CODE, code)
            self._repair()

    @property
    def code(self) -> str:
        """Code that began the search."""
        return str(self._study.user_attrs[_CODE])

    @property
    def instead(self) -> str:
        """Finished search that this one replaces."""
        return str(self._study.user_attrs[_INSTEAD])

    @property
    def made(self) -> list[Trial]:
        """Finished trials, in order."""
        stored = self._study.user_attrs
        rounds = [stored[f"{_ROUND}{number}"] for number in range(self._rounds)]
        return [_trial(values) for trials in rounds for values in trials]

    def ask(self) -> list[Trial]:
        """Return the trials of the next round; empty if the search has all its trials.

        A round is always complete, so that a longer search continues a shorter one.
        """
        first = len(self.made)
        self._asked: list[optuna.Trial] = []
        asked: list[Trial] = []
        with _quiet():
            self._study.sampler = self._sampler()
            for number in range(first, first + self.tuning.together) if first < self.tuning.trials else ():
                if number == 0:
                    self._study.enqueue_trial(proposal(self._space, self.tuning.cell.params))
                elif asked:
                    self._study.enqueue_trial(self._alike(asked[0]))
                trial = self._study.ask()
                trial.set_user_attr(_NUMBER, number)
                self._asked.append(trial)
                params = suggest(trial, self._space, self.tuning.cell.params)
                if number == 0:  # the initial configuration is not rounded
                    params = {name: self.tuning.cell.params[name] for name in params}
                asked.append(Trial(number, params, "asked"))
        return asked

    def tell(self, results: Sequence[Trial]) -> None:
        """Record the results of the last round returned by `ask`."""
        with _quiet():
            self._study.set_user_attr(f"{_ROUND}{self._rounds}", [asdict(trial) for trial in results])
            for trial, proposed in zip(results, self._asked, strict=True):
                state, value, reached = self._state(trial)
                for epochs, best in reached.items():
                    proposed.report(best, epochs)
                self._study.tell(proposed, value if state is TrialState.COMPLETE else None, state)

    @property
    def _rounds(self) -> int:
        """Number of finished rounds."""
        return sum(name.startswith(_ROUND) for name in self._study.user_attrs)

    def _alike(self, leader: Trial) -> dict[str, Any]:
        """Return the values of the architecture in Optuna's form, which are equal for all trials of a round."""
        same = architecture(self.tuning.cell.method, self._space, leader.params)
        return proposal({name: self._space[name] for name in same}, {**self.tuning.cell.params, **leader.params})

    def _sampler(self) -> Any:
        purpose = ("tuning", self.tuning.search_id, self._rounds)
        seed = int(sequence(self.tuning.seed, *purpose).generate_state(1)[0])
        if self.tuning.sampler == "random":
            return optuna.samplers.RandomSampler(seed=seed)
        return optuna.samplers.TPESampler(
            n_startup_trials=_STARTUP,
            n_ei_candidates=24,
            multivariate=False,
            group=False,
            constant_liar=True,
            seed=seed,
        )

    def _state(self, trial: Trial) -> tuple[TrialState, float | None, dict[int, float]]:
        """Return a trial's state for Optuna, its value if complete, and its values by epoch if stopped."""
        value = trial.values.get(self.tuning.guide.name)
        if trial.status == "ok" and value is not None:
            return TrialState.COMPLETE, value, {}
        if trial.status == "stopped":
            return TrialState.PRUNED, None, {epochs: best for epochs, best in trial.rungs if best is not None}
        return TrialState.FAIL, None, {}

    def _repair(self) -> None:
        """Clean up after a killed process: no trial is running or waiting, and every finished trial counts once."""
        finished = self.made
        while any(trial.state == TrialState.WAITING for trial in self._study.trials):
            self._study.ask()  # takes the waiting trial
        trials = self._study.trials
        counting = {trial.user_attrs.get(_NUMBER) for trial in trials if trial.state.is_finished() and _counts(trial)}
        for trial in trials:
            if trial.state != TrialState.RUNNING:
                continue
            number = trial.user_attrs.get(_NUMBER)
            if number is not None and number < len(finished) and number not in counting:
                self._add(trial, finished[number])
            self._study.tell(trial.number, state=TrialState.FAIL)

    def _add(self, proposed: FrozenTrial, finished: Trial) -> None:
        """Add a finished trial that is stored but unknown to Optuna."""
        state, value, reached = self._state(finished)
        if state is TrialState.FAIL:
            return
        if state is TrialState.PRUNED:
            value = reached[max(reached)] if reached else None
        self._study.add_trial(
            create_trial(
                state=state,
                value=value,
                params=proposed.params,
                distributions=proposed.distributions,
                user_attrs=proposed.user_attrs,
                intermediate_values=reached,
            )
        )


@contextmanager
def opened(tuning: Tuning, folder: Path | None, code: str = "", instead: str = "") -> Iterator[Search]:
    """Open a search in `folder` (None: in memory). Raises `LLPBenchError` if another process has opened it.

    It starts over if other `code` began it, or if `instead` is given and it does not replace that search.
    """
    if folder is None:
        yield Search(tuning, InMemoryStorage(), code)
        return
    path = folder / f"{tuning.search_id}.log"
    lock = FileLock(path.with_suffix(".lock"), timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        raise LLPBenchError(f"another llpbench is running search {str(path)!r}. Wait until it ends.") from error
    except OSError as error:
        raise _unkept(path, error) from error
    try:
        try:
            _repair_file(path)
            search = Search(tuning, _storage(path), code, instead)
            if search.code != code or (instead and search.instead != instead):
                path.unlink()
                search = Search(tuning, _storage(path), code, instead)
        except OSError as error:
            raise _unkept(path, error) from error
        except (ValueError, KeyError) as error:  # from a complete line that Optuna did not write
            raise LLPBenchError(f"search {str(path)!r} is damaged. Delete it to start the search over.") from error
        yield search
    finally:
        lock.release()


def _unkept(path: Path, error: OSError) -> LLPBenchError:
    reason = error.strerror or error
    return LLPBenchError(f"search {str(path)!r} cannot be saved: {reason}. Choose another --out.")


def _storage(path: Path) -> BaseStorage:
    return JournalStorage(JournalFileBackend(str(path), cast(Any, _Held())))


class _Held:
    """Lock for Optuna without effect: this process has a lock, and Optuna's lock would outlive a killed process."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _repair_file(path: Path) -> None:
    """Remove an incomplete last line, which a killed process may have left."""
    with contextlib.suppress(FileNotFoundError):
        content = path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(path, end)


def _counts(trial: FrozenTrial) -> bool:
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED)


def _trial(values: dict[str, Any]) -> Trial:
    rungs = tuple((int(epochs), value) for epochs, value in values["rungs"])
    return Trial(**{**values, "rungs": rungs})


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Optuna's messages."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
