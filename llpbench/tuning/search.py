"""A search by Optuna: asked and told in rounds, kept in Optuna's own journal file, the same however often it is killed.

A round is some trials of one architecture: one that the sampler proposes, and others that it proposes with the same
architecture. A new sampler is made for each round, with a seed of its own, and what became of a round is written
down before Optuna is told of it: a round that was interrupted is asked for again, and gives the same trials.
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
"""attributes of Optuna's: of the study, what became of a round, and what has begun it; of a trial, our number of it"""
_STARTUP = 10
"""trials that are drawn at random before TPE begins"""


class Search:
    """A search that is open, by this process alone."""

    def __init__(self, tuning: Tuning, storage: BaseStorage, code: str = "", instead: str = "") -> None:
        """Goes on with what `storage` holds of it; `code` and `instead`: what begins it, if it holds nothing."""
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
        """Which code has begun it."""
        return str(self._study.user_attrs[_CODE])

    @property
    def instead(self) -> str:
        """The finished search that this one replaces."""
        return str(self._study.user_attrs[_INSTEAD])

    @property
    def made(self) -> list[Trial]:
        """The trials that have been made, in order."""
        told = self._study.user_attrs
        rounds = [told[f"{_ROUND}{number}"] for number in range(self._rounds)]
        return [_trial(each) for one in rounds for each in one]

    def ask(self) -> list[Trial]:
        """The next round, not yet made; empty if as many trials as were asked for have been.

        It is always whole, so that a longer search is a shorter one gone on with.
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
                if number == 0:  # not rounded
                    params = {name: self.tuning.cell.params[name] for name in params}
                asked.append(Trial(number, params, "asked"))
        return asked

    def tell(self, made: Sequence[Trial]) -> None:
        """Record the results of the round that was asked for last."""
        with _quiet():
            self._study.set_user_attr(f"{_ROUND}{self._rounds}", [asdict(trial) for trial in made])
            for trial, asked in zip(made, self._asked, strict=True):
                state, value, reached = self._worth(trial)
                for epochs, best in reached.items():
                    asked.report(best, epochs)
                self._study.tell(asked, value if state is TrialState.COMPLETE else None, state)

    @property
    def _rounds(self) -> int:
        """Number of finished rounds."""
        return sum(name.startswith(_ROUND) for name in self._study.user_attrs)

    def _alike(self, leader: Trial) -> dict[str, Any]:
        """Values of the architecture, which all trials of a round share, in Optuna's form."""
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

    def _worth(self, made: Trial) -> tuple[TrialState, float | None, dict[int, float]]:
        """State of a trial for Optuna, its value if complete, and values by epoch if stopped."""
        value = made.values.get(self.tuning.guide.name)
        if made.status == "ok" and value is not None:
            return TrialState.COMPLETE, value, {}
        if made.status == "stopped":
            return TrialState.PRUNED, None, {epochs: best for epochs, best in made.rungs if best is not None}
        return TrialState.FAIL, None, {}

    def _repair(self) -> None:
        """Tidy up after a killed process: no trial is left running or waiting, and what was made counts, once."""
        made = self.made
        while any(trial.state == TrialState.WAITING for trial in self._study.trials):
            self._study.ask()  # takes the one that waits
        found = self._study.trials
        counting = {trial.user_attrs.get(_NUMBER) for trial in found if trial.state.is_finished() and _counts(trial)}
        for trial in found:
            if trial.state != TrialState.RUNNING:
                continue
            number = trial.user_attrs.get(_NUMBER)
            if number is not None and number < len(made) and number not in counting:
                self._add(trial, made[number])
            self._study.tell(trial.number, state=TrialState.FAIL)

    def _add(self, asked: FrozenTrial, made: Trial) -> None:
        """Tell Optuna of a finished trial that is written down but that it does not know."""
        state, value, reached = self._worth(made)
        if state is TrialState.FAIL:
            return
        if state is TrialState.PRUNED:
            value = reached[max(reached)] if reached else None
        self._study.add_trial(
            create_trial(
                state=state,
                value=value,
                params=asked.params,
                distributions=asked.distributions,
                user_attrs=asked.user_attrs,
                intermediate_values=reached,
            )
        )


@contextmanager
def opened(tuning: Tuning, folder: Path | None, code: str = "", instead: str = "") -> Iterator[Search]:
    """The search, kept in `folder` (None: forgotten afterwards). Raises `LLPBenchError` if another process has it.

    A search that other `code` began starts over. So does one that was not begun `instead` of the search named there.
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
            found = Search(tuning, _storage(path), code, instead)
            if found.code != code or (instead and found.instead != instead):
                path.unlink()
                found = Search(tuning, _storage(path), code, instead)
        except OSError as error:
            raise _unkept(path, error) from error
        except (ValueError, KeyError) as error:  # of a whole line that is none of Optuna's
            raise LLPBenchError(f"search {str(path)!r} is damaged. Delete it to start the search over.") from error
        yield found
    finally:
        lock.release()


def _unkept(path: Path, error: OSError) -> LLPBenchError:
    reason = error.strerror or error
    return LLPBenchError(f"search {str(path)!r} cannot be saved: {reason}. Choose another --out.")


def _storage(path: Path) -> BaseStorage:
    return JournalStorage(JournalFileBackend(str(path), cast(Any, _Held())))


class _Held:
    """The lock that Optuna asks for: this process has one already, and Optuna's would outlive a kill."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _repair_file(path: Path) -> None:
    """Cut off the torn last line that a killed process may have left."""
    with contextlib.suppress(FileNotFoundError):
        content = path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(path, end)


def _counts(trial: FrozenTrial) -> bool:
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED)


def _trial(told: dict[str, Any]) -> Trial:
    rungs = tuple((int(epochs), value) for epochs, value in told["rungs"])
    return Trial(**{**told, "rungs": rungs})


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Optuna's own messages."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
