"""A fit in passes over files equals the fit in memory, which draws the same sample of bags."""

from __future__ import annotations

import tempfile
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.blocks import bag_process, many_rows, trees
from llpbench.blocks.count_trees import boost_counts, boost_posteriors
from llpbench.blocks.counts import BagCounts
from llpbench.blocks.trees import TreeRows, TreeSettings
from llpbench.core.bags import BaggedRows, Rows
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS
from llpbench.core.seeding import generator
from llpbench.data.bag_tables import rows_of_bags
from llpbench.owndata import bag_store, rows_by_bag
from llpbench.owndata.large_fit import fit_large
from llpbench.owndata.row_passes import LargeRows
from llpbench.owndata.tree_parts import TreeParts, union_of_all_rows
from llpbench.tables.row_files import RowBatches

FEW_DRAWS = {"draws": 0}
"""of the scales: five times as fast"""
SAMPLED = {"_MANY_ROWS": 500, "_SAMPLE_ROWS": 300, "_FEWEST_BAGS": 20, "_MANY_BAGS": 50}


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred rows are too many: a sample of bags is drawn, and bins are stored in several files."""
    for name, value in SAMPLED.items():
        monkeypatch.setattr(bag_process, name, value)
    monkeypatch.setattr(many_rows, "_ROWS", 128)
    monkeypatch.setattr(bag_store, "FILE_BYTES", 2000)
    monkeypatch.setattr(rows_by_bag, "PIECE_ROWS", 128)
    monkeypatch.setattr(rows_by_bag, "_FILE_BYTES", 2000)


def made_up(folder: Path, classes: int = 2, parts: int = 3) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows with their districts, also as parts of parquet and as packed text, and counts by district."""
    frame, bags, votes = people(900, 60, classes=classes)
    rows = frame.assign(town=frame["town"].astype(object), district=bags)
    (folder / "parts").mkdir()
    for part, some in enumerate(np.array_split(np.arange(len(rows)), parts)):
        rows.iloc[some].to_parquet(folder / "parts" / f"{part}.parquet", index=False)
    rows.to_csv(folder / "rows.csv.gz", index=False)
    return rows, counted(bags, votes).rename_axis("district")


def in_passes(
    path: Path, counts: pd.DataFrame, rows: int = 100, params: Any = FEW_DRAWS, method: str = "bag-gp", **given: Any
) -> LLPClassifier:
    batches = RowBatches(path, {}, keys=["district"], rows=rows)
    model = LLPClassifier(method, params=params)
    return fit_large(model, LargeRows(batches, ["district"], []), counts=counts, say=lambda _: None, **given)


def in_memory(
    rows: pd.DataFrame, counts: pd.DataFrame, params: Any = FEW_DRAWS, method: str = "bag-gp", **given: Any
) -> LLPClassifier:
    return LLPClassifier(method, params=params).fit(features(rows), rows["district"], counts=counts, **given)


def features(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns="district")


def demand_same(one: LLPClassifier, other: LLPClassifier, rows: pd.DataFrame, away: float = 1e-9) -> None:
    assert np.abs(one.predict_proba(features(rows)) - other.predict_proba(features(rows))).max() < away
    assert one.bags_.tolist() == other.bags_.tolist()
    assert np.array_equal(one.bag_counts_, other.bag_counts_, equal_nan=True)
    assert one.left_out_ == other.left_out_
    for mine, theirs in zip(one.effects(), other.effects(), strict=True):
        assert mine.name == theirs.name
        assert np.allclose(mine.values, theirs.values, atol=1e-9)
        assert np.allclose(mine.std, theirs.std, atol=1e-9)


@pytest.mark.usefixtures("sampled")
class TestSample:
    @pytest.mark.parametrize(
        ("name", "classes", "params"),
        [("parts", 3, {}), ("rows.csv.gz", 2, {}), ("parts", 2, {**FEW_DRAWS, "link": "identity"})],
    )
    def test_it_equals_the_fit_in_memory(self, tmp_path: Path, name: str, classes: int, params: Any) -> None:
        rows, counts = made_up(tmp_path, classes)
        demand_same(in_passes(tmp_path / name, counts, params=params), in_memory(rows, counts, params), rows)

    def test_confounded_bags_get_a_second_sample(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        rows, counts = made_up(tmp_path)
        plain = in_passes(tmp_path / "parts", counts)
        monkeypatch.setattr(bag_process, "_CONFOUNDED", -1.0)
        wary = in_passes(tmp_path / "parts", counts)
        demand_same(wary, in_memory(rows, counts), rows)
        assert np.abs(wary.predict_proba(features(rows)) - plain.predict_proba(features(rows))).max() > 1e-3

    @pytest.mark.parametrize("extreme", [1e20, 1e-3])
    def test_extreme_values_constant_columns_suppressed_counts_and_bags_of_one_table_only(
        self, tmp_path: Path, extreme: float
    ) -> None:
        rows, counts = made_up(tmp_path)
        rows.loc[[5, 800], "age"] = extreme
        rows["constant"] = 0.1
        rows.to_parquet(tmp_path / "rows.parquet", index=False)
        counts = counts.astype(float).drop(index="d05")
        counts.loc["d07"] = np.nan
        counts.loc["elsewhere"] = 3.0
        model = in_passes(tmp_path / "rows.parquet", counts, unmatched="drop")
        demand_same(model, in_memory(rows, counts, unmatched="drop"), rows)

    def test_the_order_of_parts_and_batches_does_not_matter(self, tmp_path: Path) -> None:
        rows, counts = made_up(tmp_path)
        parts = [pd.read_parquet(tmp_path / "parts" / f"{part}.parquet")["district"] for part in range(3)]
        assert len({*parts[0]} & {*parts[1]} & {*parts[2]}) > 30  # rows of a bag are in several parts
        before = in_passes(tmp_path / "parts", counts).predict_proba(features(rows))
        (tmp_path / "parts" / "0.parquet").rename(tmp_path / "parts" / "9.parquet")
        after = in_passes(tmp_path / "parts", counts, rows=77).predict_proba(features(rows))
        assert np.abs(after - before).max() < 1e-6

    def test_known_bags_move_predictions_as_their_counts_say(self, tmp_path: Path) -> None:
        rows, counts = made_up(tmp_path)
        moved = in_passes(tmp_path / "parts", counts)._known_bags()
        expected = in_memory(rows, counts)._known_bags()
        # spread and deviation are learned from the sample, so they are only near those of all bags
        assert moved.effects.shape == expected.effects.shape
        assert np.abs(moved.effects - expected.effects).max() < 0.2
        assert moved.deviation == pytest.approx(expected.deviation, abs=0.1)

    def test_a_saved_model_predicts_the_same_and_temporary_files_are_deleted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows, counts = made_up(tmp_path)
        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        model = in_passes(tmp_path / "parts", counts)
        assert list((tmp_path / "temporary").iterdir()) == []
        model.save(tmp_path / "model")
        demand_same(LLPClassifier.load(tmp_path / "model"), model, rows)
        monkeypatch.setattr(bag_store.BagStore, "finish", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            in_passes(tmp_path / "parts", counts)
        assert list((tmp_path / "temporary").iterdir()) == []

    def test_bags_that_are_too_few_or_too_large_are_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _, counts = made_up(tmp_path)
        monkeypatch.setattr(bag_process, "_LARGEST_BAG", 10)
        with pytest.raises(LLPBenchError, match="60 bags"):
            in_passes(tmp_path / "parts", counts)


FEW_TREES = {"trees": 200, "rounds": 2}


@pytest.mark.usefixtures("sampled")
class TestOtherMethods:
    """Trees of `auto` come from parts of all rows; all others are fitted to a sample of bags."""

    def test_auto_has_the_trees_of_parts_in_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for limit, value in {"ONE_PART": 300, "_PART_ROWS": 300, "_PART_BAGS": 10}.items():
            monkeypatch.setattr(trees, limit, value)
        rows, counts = made_up(tmp_path)
        found: Any = in_passes(tmp_path / "parts", counts, params=FEW_TREES, method="auto")
        every, bags = found._model.columns(features(rows)), rows["district"].astype("category").cat.codes.to_numpy()
        process: Any = in_passes(tmp_path / "parts", counts, params={})._model.predictor
        assert np.array_equal(found._model.predictor.process(every), process.process(every))
        whole = BaggedRows(every, rows_of_bags(bags.astype(np.int64), 60), found.bag_counts_)

        def in_parts(data: TreeRows) -> tuple[Any, Any]:
            rng, bag_counts = generator(0, "trees"), BagCounts(whole)
            refitted = boost_posteriors(data, bag_counts, process.process(every), TreeSettings(100), 2, rng)
            return refitted, boost_counts(data, bag_counts, whole.prior, TreeSettings(200), rng)

        assert len(TreeRows(every).parts(bags.astype(np.int64), 60)) == 3
        expected = in_parts(TreeRows(every))
        with TreeParts(whole, whole) as parts:
            place = np.random.default_rng(1).permutation(900)
            some = Rows(*(part[place] for part in every))
            parts.add(*parts.records_by(process.process)(some, whole.bag_of_row[place]))
            params = METHODS.get("bag-gp-gbdt").Params(**FEW_TREES)
            same = union_of_all_rows(process.process, parts, whole.prior, params, generator(0, "trees"))
        for one, other in zip((same.refitted, same.counted), expected, strict=True):
            assert np.abs(one(every) - other(every)).max() < 1e-3
        assert found.doubts_.unexplained == process.process.unexplained
        # the fit has bins and seeds of its own
        assert np.corrcoef(found._model.predictor(every)[:, 1], same(every)[:, 1])[0, 1] > 0.98

    @pytest.mark.parametrize(
        ("method", "params", "name"), [("count-gbdt", {"trees": 100}, "rows.csv.gz"), ("bag-mean-linear", {}, "parts")]
    )
    def test_the_fit_is_that_of_the_sample(self, tmp_path: Path, method: str, params: Any, name: str) -> None:
        rows, counts = made_up(tmp_path, classes=3)
        model = in_passes(tmp_path / name, counts, params=params, method=method)
        bags = generator(0, "training").choice(60, 20, replace=False)
        chosen = rows["district"].isin(model.bags_[bags]).to_numpy()
        inside, of_bag = rows["district"][chosen].astype("category"), model._model.columns(features(rows[chosen]))
        index = rows_of_bags(inside.cat.codes.to_numpy().astype(np.int64), 20)
        sample = BaggedRows(of_bag, index, model.bag_counts_[np.sort(bags)])
        expected: Any = LLPClassifier(method, params=params)._fitted(sample, model._model.columns.cardinalities)
        found: Any = model._model.predictor
        every = model._model.columns(features(rows))
        assert np.allclose(found(every), expected(every), atol=1e-6), "rows of the two fits lie differently in memory"

    def test_all_known_bags_have_effects_from_all_of_their_rows(self, tmp_path: Path) -> None:
        rows, counts = made_up(tmp_path)
        counts = counts.astype(float)
        counts.loc["d07"] = np.nan
        model = in_passes(tmp_path / "parts", counts, params={}, method="bag-mean-linear")
        learned = model._known_bags()
        known = ~np.isnan(model.bag_counts_).any(axis=1)
        assert known.sum() == 59
        assert np.isfinite(learned.effects[known]).all()
        assert np.isnan(learned.effects[~known]).all()
        given = rows["district"] != "d07"
        whole = BaggedRows(
            model._model.columns(features(rows[given])),
            rows_of_bags(rows["district"][given].astype("category").cat.codes.to_numpy().astype(np.int64), 59),
            model.bag_counts_[known],
        )
        logits = learned.spread * np.log(model.predict_proba(features(rows[given])))
        expected = BagCounts(whole).effects_of_spread(logits, learned.deviation)[0]
        moved = learned.effects[known]
        differences = moved[:, 1] - moved[:, 0] - (expected[:, 1] - expected[:, 0])
        assert np.ptp(differences) < 0.1  # up to the offset, which is that of the sample


@pytest.mark.parametrize(("method", "params"), [("bag-gp", FEW_DRAWS), ("auto", FEW_TREES)])
def test_few_rows_are_fitted_at_once(tmp_path: Path, method: str, params: Any) -> None:
    rows, counts = made_up(tmp_path)
    given: dict[str, Any] = {"params": params, "method": method}
    model, expected = in_passes(tmp_path / "parts", counts, **given), in_memory(rows, counts, **given)
    demand_same(model, expected, rows, away=1e-6)  # trees are of single precision
    assert np.allclose(model._known_bags().effects, expected._known_bags().effects, atol=1e-5)
    assert (model.doubts_ is None) == (expected.doubts_ is None)
    if model.doubts_ is not None and expected.doubts_ is not None:
        assert astuple(model.doubts_)[:3] == pytest.approx(astuple(expected.doubts_)[:3], abs=1e-5)


@pytest.mark.parametrize("unmatched", ["raise", "drop"])
def test_rows_without_a_bag(tmp_path: Path, unmatched: str) -> None:
    rows, counts = made_up(tmp_path)
    rows.loc[[3, 800], "district"] = None
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    if unmatched == "drop":
        model = in_passes(tmp_path / "rows.parquet", counts, unmatched="drop", impossible="suppress")
        assert model.left_out_["rows"] == 2
    else:
        with pytest.raises(LLPBenchError, match="2 of 900 rows"):
            in_passes(tmp_path / "rows.parquet", counts)


@pytest.mark.parametrize("settings", [{"method": "dllp"}, {"ensemble": 2}, {"numbers": "scores"}])
def test_what_is_not_fitted_in_passes_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    _, counts = made_up(tmp_path)
    rows = LargeRows(RowBatches(tmp_path / "parts", {}), ["district"], [])
    with pytest.raises(LLPBenchError, match="--out-of-core"):
        fit_large(LLPClassifier(**{"method": "bag-gp"} | settings), rows, counts=counts, say=lambda _: None)


def test_an_infinite_value_is_blamed_on_its_part(tmp_path: Path) -> None:
    rows, counts = made_up(tmp_path)
    rows.iloc[:50].assign(age=np.inf).to_parquet(tmp_path / "parts" / "1.parquet", index=False)
    with pytest.raises(LLPBenchError, match=r"1\.parquet.*'age'"):
        in_passes(tmp_path / "parts", counts)
