"""Differences of an entry from named ones, paired by task and seed, against scipy's intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from factory import PROTOCOL, runs
from scipy import stats

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report.paired import PairedDifference, differences
from llpbench.results.frame import tidy

MINE = runs("mine", 0.80, 0.82, 0.84)


def compared(*records: Record, names: Sequence[str] = ("dllp",), mine: str = "mine") -> list[PairedDifference]:
    return differences(tidy(records, criteria=["auc"]), _of(records, mine), names, "auc")[0]


def _of(records: Sequence[Record], method: str) -> set[str]:
    return {each["run"] for each in records if each["spec"]["method"] == method}


def test_seeds_of_one_dataset_are_paired() -> None:
    (found,) = compared(*MINE, *runs("dllp", 0.81, 0.82, 0.87, 0.1))  # no run of mine has the last seed
    expected = stats.ttest_1samp([-1.0, 0.0, -3.0], 0)
    assert (found.points, found.p) == pytest.approx((-4 / 3, expected.pvalue))
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert str(found) == "mine (mlp) minus dllp (mlp): -1.3 [-5.1, 2.5], 3 seeds, not significant"


def test_bag_sizes_are_averaged_by_seed() -> None:
    large = [*runs("mine", 0.7, 0.7, 0.7, bag_size=256), *runs("dllp", 0.71, 0.72, 0.76, bag_size=256)]
    (found,) = compared(*MINE, *runs("dllp", 0.81, 0.82, 0.87), *large)
    expected = stats.ttest_1samp([-1.0, -1.0, -4.5], 0).confidence_interval(0.95)
    assert (found.points, found.low, found.high) == pytest.approx((-6.5 / 3, *expected))


def test_datasets_are_the_independent_values_of_several() -> None:
    gains, records = {"a": 0.01, "b": 0.03, "c": 0.02, "d": 0.05}, []
    for dataset, gain in gains.items():
        records += runs("dllp", 0.6, 0.7, dataset=dataset)
        records += runs("mine", 0.6 + gain, 0.7 + gain, 0.1, dataset=dataset)
    records += runs("mine", 0.9, dataset="e")  # where the other has no run
    (found,) = compared(*records)
    expected = stats.ttest_1samp([100 * gain for gain in gains.values()], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected))
    assert str(found) == "mine (mlp) minus dllp (mlp): +2.8 [0.03, 5.5], 4 datasets, 2 seeds, significantly better"


def test_significance_is_corrected_for_the_number_of_comparisons() -> None:
    others = [*runs("dllp", 0.78, 0.806, 0.811), *runs("bdc", 0.81, 0.81, 0.85), *runs("vat", 0.9, 0.921, 0.939)]
    found = compared(*MINE, *others, names=["dllp", "bdc", "vat"])
    single = [float(stats.ttest_1samp(gaps, 0).pvalue) for gaps in ([2.0, 1.4, 2.9], [-1, 1, -1], [-10, -10.1, -9.9])]
    assert [each.p for each in found] == pytest.approx([2 * single[0], single[1], 3 * single[2]])
    assert single[0] < 0.05 < 2 * single[0]
    assert [each.verdict for each in found] == [
        "not significant after correction for 3 comparisons",
        "not significant",
        "significantly worse",
    ]


def test_two_seeds_have_no_interval() -> None:
    (found,) = compared(*MINE[:2], *runs("dllp", 0.81, 0.82))
    assert str(found) == "mine (mlp) minus dllp (mlp): -0.5, 2 seeds, too few seeds for an interval"
    assert np.isnan(found.p)


def test_the_other_entry_is_the_default_with_the_same_encoder_pretraining_and_protocol() -> None:
    others = [
        *runs("dllp", 0.5, 0.5, 0.5, encoder="saint"),
        *runs("dllp", 0.5, 0.5, 0.5, 0.5, params={"hidden": 8}),
        *runs("dllp", 0.5, 0.5, 0.5, pretraining="bag"),
        *runs("dllp", 0.5, 0.5, 0.5, protocol={**PROTOCOL, "epochs": 5}),
        *runs("dllp", 0.8, 0.8, 0.8),
    ]
    assert [each.points for each in compared(*MINE, *others)] == pytest.approx([2.0])
    frame = tidy([*MINE, *runs("dllp", 0.5, protocol={**PROTOCOL, "epochs": 5})], criteria=["auc"])
    found, impossible = differences(frame, _of(MINE, "mine"), ["dllp"], "auc")
    assert found == []
    assert impossible == ["mine (mlp) cannot be compared with dllp: no run has its protocol."]
    assert compared(*MINE, *runs("gp", 0.8, encoder=None, protocol=None), names=["gp"]), "no epochs, no protocol"


def test_an_unknown_method_is_one_clear_line() -> None:
    with pytest.raises(LLPBenchError, match=r"no results of 'dlp' on your tasks\. Did you mean dllp\? .*--with"):
        compared(*MINE, *runs("dllp", 0.8), names=["dlp"])
