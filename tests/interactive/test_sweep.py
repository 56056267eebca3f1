"""`llpbench.run` does what the command does, and returns the content of the journal."""

from __future__ import annotations

import inspect
import shutil
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, arguments, as_they_were, timeless

import llpbench
from llpbench import DirectMethod, LLPBenchError, load_results, register_method
from llpbench.core import registry
from llpbench.results.frame import COLUMNS
from llpbench.results.journal import Contents
from llpbench.running.settings import OPTIONS


def flags(plugin: Path, out: Path, **more: Any) -> dict[str, Any]:
    usual = {"plugin": plugin, "out": out, "datasets": "tiny", "methods": ["quick-a", "quick-b"], "seeds": range(2)}
    return {**usual, "bag_sizes": np.array([8, 16]), "executor": "debug", "plots": False, **more}


def test_call_equals_command(plugin: Path, tmp_path: Path, llpbench: LLPBench) -> None:
    made = run(**flags(plugin, tmp_path / "python"))
    llpbench.succeed(*arguments(plugin, tmp_path / "shell"))
    journals = [Contents.read(tmp_path / name / "journal.jsonl") for name in ("python", "shell")]
    assert timeless([*journals[0].records.values()]) == timeless([*journals[1].records.values()])
    files = [{file.name for file in (tmp_path / name).iterdir()} for name in ("python", "shell")]
    assert files[0] == files[1] >= {"index.html", "README.md"}
    assert repr(made).startswith("<llpbench results: 8 runs, 2 methods, 1 dataset>\n")
    assert "quick-a" in repr(made)
    assert len(load_results(tmp_path / "python", tmp_path / "shell")) == 8
    with pytest.raises(LLPBenchError, match="an empty list"):
        load_results([])


def test_edited_plugin_runs_in_new_form(plugin: Path, tmp_path: Path) -> None:
    shutil.copy(plugin.parent / "tiny.parquet", tmp_path)
    mine = Path(shutil.copy(plugin, tmp_path))
    given = flags(mine, tmp_path, methods="quick-a", bag_sizes=8)
    first, again = run(**given), run(**given)
    mine.write_text(mine.read_text().replace("1e-3 * rng", "-100.0 * rng"))
    edited = run(**given)
    seen = [results.frame["test_auc"].tolist() for results in (first, again, edited)]
    assert seen[0] == seen[1] != seen[2]


run = llpbench.run


def test_sweep_options_equal_command_options() -> None:
    told = inspect.signature(llpbench.run).parameters
    assert told.keys() == {"preset", "config", *(name.replace("-", "_") for name in OPTIONS)}
    assert told["bag_sizes"].default == OPTIONS["bag-sizes"].default == 256
    assert all(option.help in str(llpbench.run.__doc__) for option in OPTIONS.values())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bag_size": 64}, "^unknown option bag_size. Did you mean bag_sizes.* max_bags, seeds"),
        ({"bag_sizes": [0]}, "^bag_sizes must be whole numbers"),
        ({"set": {"dllp": 3}}, "^set must be METHOD.PARAM=VALUE"),
    ],
)
def test_sweep_refuses_what_command_refuses(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(LLPBenchError, match=message):
        llpbench.run(**{"out": tmp_path, **given})
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a method that only this process knows, as in a notebook."""
    monkeypatch.setattr(registry.METHODS, "_entries", dict(registry.METHODS._index()))

    @register_method("typed", reference="Doe 2026")
    class Typed(DirectMethod):
        """The prior."""

        def fit(self, train: Any, schema: Any, rng: Any) -> Any:
            return lambda rows: np.tile(train.prior, (len(rows.numeric), 1))

    return "typed"


def test_method_of_this_process_runs_in_it(typed: str, plugin: Path, tmp_path: Path, capsys: Any) -> None:
    given = flags(plugin, tmp_path, methods=typed, bag_sizes=8)
    made = llpbench.run(**given | {"executor": "auto"})
    assert set(made.frame["status"]) == {"ok"}
    assert "method 'typed' exists in this process only: cells run here" in capsys.readouterr().err
    for name, value in (("executor", "ray"), ("ray_address", "auto"), ("cell_timeout", "1h")):
        with pytest.raises(LLPBenchError, match=f"{name}=.* Leave {name} out"):
            llpbench.run(**given | {"executor": "auto", name: value})


@pytest.fixture(scope="module")
def made(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> llpbench.Results:
    """Runs whose predictions were kept."""
    out = tmp_path_factory.mktemp("kept")
    with as_they_were():
        return run(**flags(plugin, out, methods="quick-a", bag_sizes=8, save_predictions=True))


@pytest.fixture(scope="module")
def published() -> llpbench.Results:
    return load_results("published")


def test_kept_predictions_are_of_judged_rows(made: llpbench.Results, plugin: Path) -> None:
    first = made.frame.iloc[0]
    kept = made.predictions(first["run"])
    table = pd.read_parquet(plugin.parent / "tiny.parquet")
    assert [*kept["split"].value_counts()[["validation", "test"]]] == [40, 40]
    assert kept["row"].is_unique
    assert [*kept["label"]] == [*table["label"].iloc[kept["row"]]]
    test = kept[kept["split"] == "test"]
    positive, others = (test.loc[test["label"] == label, "auc/yes"].to_numpy() for label in ("yes", "no"))
    auc = ((positive[:, None] > others).mean() + (positive[:, None] == others).mean() / 2).item()
    assert auc == pytest.approx(first["test_auc"], abs=1e-6)
    with pytest.raises(LLPBenchError, match=first["run"]):
        replace(made, records=[{**record, "finished": "later"} for record in made.records]).predictions(first["run"])


def test_impossible_predictions_are_refused(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = flags(plugin, tmp_path, methods="quick-a", bag_sizes=8, save_predictions=True)
    (tmp_path / "predictions").write_text("a file")
    with pytest.raises(LLPBenchError, match=r"^predictions cannot be stored in .* Choose another"):
        llpbench.run(**given)
    assert (tmp_path / "journal.jsonl").read_bytes() == b""
    (tmp_path / "predictions").unlink()
    monkeypatch.setattr("llpbench.training.cell_runs.replace_file", Mock(side_effect=OSError(28, "No space left")))
    made = llpbench.run(**given)
    assert "No space left" in capsys.readouterr().err
    assert set(made.frame["status"]) == {"ok"}


def test_errors_name_arguments_in_python(plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = LLPBenchError("no room in /a--b/bag-sizes. Choose --executor inline, or --save-predictions.")
    monkeypatch.setattr("llpbench.running.runner.run", Mock(side_effect=error))
    with pytest.raises(LLPBenchError, match=r"^no room in /a--b/bag-sizes. Choose executor inline, or save_pred"):
        llpbench.run(**flags(plugin, tmp_path))


class TestResults:
    def test_results_rows_are_unique_and_scores_equal_board(self, published: llpbench.Results) -> None:
        frame, scores = published.frame, published.scores
        assert {*frame} == COLUMNS.keys()
        assert len(frame) == sum(len(record["results"]) or 1 for record in published.records)
        assert not frame.duplicated(["run", "criterion"]).any()
        one = frame.query("run == @published.records[0]['run'] and criterion == 'mpiou'").iloc[0]
        assert one["test_auc"] == published.records[0]["results"]["mpiou"]["test"]["auc"]
        assert one["regime"] == "coarse"
        assert all(name.isidentifier() for name in scores)
        names = ["criterion", "bagging", "epochs", "patience", "bags_per_step", "method", "encoder", "pretraining"]
        assert not scores.duplicated([*names, "configuration", "dataset", "bag_size", "by"]).any()
        of = scores.query("criterion == 'auc' and bagging == 'ordered' and epochs == 100 and patience == 10")
        of = of[of["encoder"].isna() & (of["bags_per_step"] == 2) & (of["method"] == "bag-gp-gbdt")]
        board = published.leaderboard("auc", bagging="ordered", epochs=100).set_index("method")
        mean = of.groupby("dataset")["mean"].mean().mean()
        assert mean == pytest.approx(board.loc["bag-gp-gbdt", "mean"], abs=1.0), "of the same scale"

    def test_leaderboard_orders_ranked_before_supervised(self, published: llpbench.Results) -> None:
        board = published.leaderboard("auc", bagging="ordered", epochs=100)
        assert {"rank", "method", "mean", "interval_low", "interval_high"} <= {*filter(str.isidentifier, board)}
        assert not board.duplicated(["method", "encoder", "pretraining", "configuration"]).any()
        with pytest.raises(LLPBenchError, match=r"bagging='heaps'.* auc 'ordered' \(100 "):
            published.leaderboard(bagging="heaps")
        with pytest.raises(LLPBenchError, match="metric='brier'"):
            published.leaderboard("brier")
        ranked = board["rank"].notna()
        assert [*board.loc[ranked, "rank"]] == [*range(1, ranked.sum() + 1)]
        assert ranked[: ranked.sum()].all()
        assert board.loc[ranked, "role"].isin(["", "floor"]).all()
        assert board.query("role == 'floor' and rank > 0")["method"].item() == "bag-soft-label"
        assert board["role"][~ranked].isin(["supervised", "ceiling", "control"]).any()
        assert f"{len(published):,} runs" in repr(published).splitlines()[0]
        assert len(repr(published)) < 3000 > len(repr(published.leaderboards))

    def test_plot_is_displayable(self, published: llpbench.Results, tmp_path: Path) -> None:
        picture = published.plot("bag-size")
        assert picture._repr_png_().startswith(b"\x89PNG")
        assert repr(picture) == f"<llpbench plot: {picture.title}>"
        picture.save(tmp_path / "plot.svg")
        saved = (tmp_path / "plot.svg").read_text(encoding="utf-8")
        for words in (*picture.title.split(), *picture.caption.split()):
            assert escape(words, quote=False) in saved


def test_failed_runs_have_no_criterion(plugin: Path, tmp_path: Path) -> None:
    made = llpbench.run(**flags(plugin, tmp_path, methods="broken", bag_sizes=8))
    assert [reason.partition(" (")[0] for reason in made.frame["reason"]] == ["ValueError: no luck"] * 2
    assert made.frame["criterion"].isna().all()
    assert "2 failed" in repr(made)
    with pytest.raises(LLPBenchError, match=r"'bag-sizes'.*Did you mean bag-size"):
        made.plot("bag-sizes")
