"""A search gives the same result wherever and however often it is interrupted."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from llpbench.core import files
from llpbench.core.cell import Tuning
from llpbench.core.errors import LLPBenchError
from llpbench.training.specification import make_cell
from llpbench.tuning import search as search_module
from llpbench.tuning.search import Search, Trial
from llpbench.tuning.space import architecture, search_space

CELL = make_cell("tabllp-bdc", "adult", bag_size=256, encoder="mlp")
TUNING = Tuning(CELL, "fine", 24, search_space("tabllp-bdc"), together=4)


class Killed(BaseException):
    """As SIGKILL would: nothing that stands behind is run."""


def made(trials: Sequence[Trial]) -> list[Trial]:
    """What became of trials, as a function of their configurations alone."""
    told = []
    for trial in trials:
        value = 1 / (1 + abs(trial.params["learning_rate"] - 0.0007) * 1e3) - 0.1 * trial.params["dropout"]
        kind = trial.number % 4
        if kind == 1 and trial.number:
            told.append(replace(trial, status="stopped", values={"auc": value}, rungs=((3, value / 2), (9, value))))
        elif trial.number == 6:
            told.append(replace(trial, status="failed", reason="the loss was not finite in epoch 0"))
        else:
            told.append(replace(trial, status="ok", values={"auc": value}, epochs=30, rungs=((3, value / 2),)))
    return told


def finish(search: Search) -> list[Trial]:
    while asked := search.ask():
        search.tell(made(asked))
    return search.made


@pytest.fixture(scope="module")
def undisturbed() -> list[Trial]:
    with Search.opened(TUNING, None) as search:
        return finish(search)


def test_first_trial_is_default(undisturbed: list[Trial]) -> None:
    odd = replace(CELL, params={**CELL.params, "learning_rate": 0.000123456})
    with Search.opened(replace(TUNING, cell=odd), None) as search:
        assert search.ask()[0].params["learning_rate"] == 0.000123456, "it is not rounded"
    assert [trial.number for trial in undisturbed] == list(range(24))
    assert all(CELL.params[name] == value for name, value in undisturbed[0].params.items())
    assert len({str(trial.params) for trial in undisturbed}) == 24
    for start in range(0, 24, 4):  # trials of a round have one architecture
        round_ = [trial.params for trial in undisturbed[start : start + 4]]
        assert len({(params["objective"], params["dropout"], params["hidden"]) for params in round_}) == 1
        assert len({params["learning_rate"] for params in round_}) == 4


@pytest.mark.parametrize(
    ("method", "fixed"), [("tabllp-bdc", {"objective": "self-contrastive"}), ("selfclr-llp", {"mode": "dot"})]
)
def test_fixed_condition_makes_parameter_unconditional(method: str, fixed: dict[str, str]) -> None:
    cell = make_cell(method, "adult", bag_size=256, encoder="mlp", params=fixed)
    space = {name: each for name, each in search_space(method).items() if name not in fixed}
    with Search.opened(Tuning(cell, "fine", 24, space, together=4), None) as search:
        asked = finish(search)
    rounds = [[architecture(method, space, trial.params) for trial in asked[start : start + 4]] for start in (4, 8, 12)]
    assert all(one == each[0] for each in rounds for one in each)
    assert any(name in rounds[0][0] for name, each in space.items() if "when" in each)


def test_killed_search_gives_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: list[Trial]
) -> None:
    """Killed in every round: before its results are stored, or after it."""
    attempts = itertools.count()

    def replace_file(path: Path, content: str) -> None:
        attempt = next(attempts)
        if attempt % 3 > 0:
            files.replace_file(path, content)
        if attempt % 3 < 2:
            raise Killed

    monkeypatch.setattr(search_module, "replace_file", replace_file)
    found = None
    while found is None:
        with suppress(Killed), Search.opened(TUNING, tmp_path) as search:
            found = finish(search)
    assert found == undisturbed
    assert next(attempts) == 9, "six rounds, three of them made twice"


def test_search_of_other_code_starts_over(tmp_path: Path) -> None:
    steps = (("a", "", 0), ("a", "", 12), ("b", "", 0), ("b", "noon", 0), ("b", "noon", 12), ("b", "", 12))
    for code, instead, known in steps:
        with Search.opened(replace(TUNING, trials=12), tmp_path, code, instead) as search:
            assert len(search.made) == known
            finish(search)


def test_damaged_search_file_is_named(tmp_path: Path) -> None:
    with Search.opened(TUNING, tmp_path) as search:
        search.tell(made(search.ask()))
    path = tmp_path / f"{TUNING.search_id}.json"
    whole = path.read_text()
    for content in (whole[:-9], whole.replace('"status"', '"state"'), "{}", "[]", "\0"):
        path.write_text(content)
        with pytest.raises(LLPBenchError, match=r"\.json' is damaged"), Search.opened(TUNING, tmp_path):
            pass


def test_search_that_is_open_or_cannot_be_stored_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        Search.opened(TUNING, tmp_path),
        pytest.raises(LLPBenchError, match="another llpbench"),
        Search.opened(TUNING, tmp_path),
    ):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(LLPBenchError, match="cannot be saved"), Search.opened(TUNING, tmp_path / "file"):
        pass

    def full(path: Path, content: str) -> None:  # noqa: ARG001
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(search_module, "replace_file", full)
    with pytest.raises(LLPBenchError, match="No space left"), Search.opened(TUNING, tmp_path) as search:
        search.tell(made(search.ask()))
