"""The one tidy table: a row a run and criterion, each column as the record has it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from factory import failed, make_cell_of, make_record, record, searched

from llpbench.core.criteria import METRICS
from llpbench.results.frame import COLUMNS, NO_PROTOCOL, metric_column, shown, tidy


def test_frame_row_is_run_and_criterion() -> None:
    frame = tidy([record("a", aucs={"auc": 0.9, "kl": 0.7}), failed("b", "no luck")])
    assert [*frame] == [*COLUMNS]
    assert frame[["method", "criterion"]].values.tolist() == [["a", "auc"], ["a", "kl"], ["b", None]]
    assert frame["regime"].tolist() == ["fine", "coarse", None]
    assert frame["test_auc"].tolist()[:2] == [0.9, 0.7]
    assert math.isnan(frame["test_auc"].iat[2])
    assert (frame["status"].iat[2], frame["reason"].iat[2]) == ("failed", "no luck")
    repeated = tidy([record("half \ud800 ü", 0.9), record("half \ud800 ü", 0.8)], criteria=["auc"])
    assert repeated[["method", "test_auc"]].values.tolist() == [["half ? ü", 0.8]], "the last record counts"
    chosen = tidy([record("a", aucs={"auc": 0.9, "kl": 0.7}), record("b", aucs={"kl": 0.7})], criteria=["auc"])
    assert chosen[["method", "criterion", "status"]].values.tolist() == [["a", "auc", "ok"], ["b", None, "ok"]]
    assert (len(tidy([])), [*tidy([])]) == (0, [*COLUMNS])
    assert {metric_column(name) for name in METRICS} <= COLUMNS.keys()


def test_differences_of_cell_are_text() -> None:
    made = record("a", params={"weight": 0.5}, precision="bfloat16", ensemble=3)
    made["method"]["changed"] = {"weight": 0.5, "pretraining": {"epochs": 7}}
    (row,) = tidy([made], criteria=["auc"]).to_dict("records")
    assert row["configuration"] == 'ensemble=3, precision="bfloat16", pretraining.epochs=7, weight=0.5'
    assert (row["ensemble"], row["precision"], row["numbers"]) == (3, "bfloat16", "z")
    assert '"params": {"weight": 0.5}' in row["settings"]


def test_frame_has_bag_time_and_protocol_facts() -> None:
    times = {"train": 2.0, "warm-up": 0.5, "pretraining": 10.0, "total": 20.0}
    bags = {"number": 30, "sizes": [1, 9, 64], "validation": 7, "test": 3, "histograms": []}
    neural = record("a", times=times, bags=bags, pretraining="bag", max_bags=13)
    direct = record("b", encoder=None, times={"train": 0.0}, bags={})
    first, second = tidy([neural, direct], criteria=["auc"]).to_dict("records")
    assert (first["seconds_training"], first["seconds"], first["max_bags"]) == (12.5, 20.0, 13)
    numbers = ("bags", "least_rows", "median_rows", "most_rows")
    assert [first[name] for name in numbers] == [30, 1, 9, 64]
    assert first["max_epochs"] == 300
    assert second["protocol"] == NO_PROTOCOL
    assert all(math.isnan(second[name]) for name in ("seconds_training", "bags", "most_rows", "max_epochs"))


def test_tuned_configuration_is_marked() -> None:
    start = make_cell_of("dllp")
    better = replace(start, params={"weight": 0.5})
    search = searched(start, "fine", {"auc": (better, 0.9, 0.8)})
    frame = tidy([make_record(start), make_record(better)], tunings=[search], criteria=["auc"])
    assert frame["chosen"].tolist() == [False, True]
    assert not tidy([make_record(better)])["chosen"].any()


def test_stale_runs_say_why() -> None:
    run = record("a")
    assert tidy([run], {run["run"]: "a.py has changed"})["stale"].unique().tolist() == ["a.py has changed"]
    assert tidy([run])["stale"].unique().tolist() == [""]


@pytest.mark.parametrize(("value", "expected"), [(0.25, 25.0), (None, None), (math.inf, None)])
def test_finite_values_are_shown_times_100(value: float | None, expected: float | None) -> None:
    run = record("a", value)
    (found,) = shown(tidy([run], criteria=["auc"]), "auc").tolist()
    assert found == expected or (expected is None and math.isnan(found))
    assert shown(tidy([run], criteria=["auc"]), "l1").tolist() == [25.0]
