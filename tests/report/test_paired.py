"""Differences of your entries from named ones, paired by task and seed, against scipy's intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from factory import PROTOCOL, fine_alone, runs
from scipy import stats

from llpbench.core.errors import LLPBenchError
from llpbench.core.record import Record
from llpbench.report.comparing import compare

MINE = runs("mine", 0.80, 0.82, 0.84)


def compared(*records: Record, names: Sequence[str] = ("dllp",)) -> list[str]:
    """Lines on what `mine` is compared with."""
    found = {run["run"]: run for run in fine_alone(records)}
    yours = {name: run for name, run in found.items() if run["spec"]["method"] == "mine"}
    others = {name: run for name, run in found.items() if name not in yours}
    return [*compare(yours, others, rivals=names).differences]


def numbers(line: str) -> list[float]:
    """Difference and ends of its interval."""
    return [float(number) for number in re.findall(r"[-+]?\d+\.\d+", line)]


GAINS = {"a": 0.01, "b": 0.03, "c": 0.02, "d": 0.05}


@pytest.mark.parametrize(
    ("records", "gaps", "extent"),
    [
        # no run of mine has the last seed
        pytest.param([*MINE, *runs("dllp", 0.81, 0.82, 0.87, 0.1)], [-1.0, 0.0, -3.0], "3 seeds", id="seeds"),
        pytest.param(
            [
                *(*MINE, *runs("dllp", 0.81, 0.82, 0.87), *runs("mine", 0.7, 0.7, 0.7, bag_size=256)),
                *runs("dllp", 0.71, 0.72, 0.76, bag_size=256),
            ],
            [-1.0, -1.0, -4.5],
            "3 seeds",
            id="means over bag sizes",
        ),
        pytest.param(
            [
                *(run for name in GAINS for run in runs("dllp", 0.6, 0.7, dataset=name)),
                *(
                    run
                    for name, gain in GAINS.items()
                    for run in runs("mine", 0.6 + gain, 0.7 + gain, 0.1, dataset=name)
                ),
                *runs("mine", 0.9, dataset="e"),  # where the other has no run
            ],
            [1.0, 3.0, 2.0, 5.0],
            "4 datasets, 2 seeds, significantly better",
            id="datasets",
        ),
    ],
)
def test_differences_are_paired(records: list[Record], gaps: list[float], extent: str) -> None:
    (line,) = compared(*records)
    expected = stats.ttest_1samp(gaps, 0).confidence_interval(0.95)
    assert numbers(line) == pytest.approx([sum(gaps) / len(gaps), *expected], abs=0.051)
    assert extent in line


def test_significance_is_corrected_for_comparisons() -> None:
    others = [*runs("dllp", 0.78, 0.806, 0.811), *runs("bdc", 0.81, 0.81, 0.85), *runs("vat", 0.9, 0.921, 0.939)]
    verdicts = [line.rpartition("seeds, ")[2] for line in compared(*MINE, *others, names=["dllp", "bdc", "vat"])]
    assert verdicts[1:] == ["not significant", "significantly worse"]
    assert verdicts[0].startswith("not significant after correction for 3")


def test_two_seeds_have_no_interval() -> None:
    (line,) = compared(*MINE[:2], *runs("dllp", 0.81, 0.82))
    assert numbers(line) == [-0.5]


def test_rival_is_default_entry_of_same_protocol() -> None:
    others = [
        *runs("dllp", 0.5, 0.5, 0.5, encoder="saint"),
        *runs("dllp", 0.5, 0.5, 0.5, 0.5, params={"hidden": 8}),
        *runs("dllp", 0.5, 0.5, 0.5, pretraining="bag"),
        *runs("dllp", 0.5, 0.5, 0.5, protocol={**PROTOCOL, "epochs": 5}),
        *runs("dllp", 0.8, 0.8, 0.8),
    ]
    (line,) = compared(*MINE, *others)
    assert numbers(line)[0] == pytest.approx(2.0)
    (line,) = compared(*MINE, *runs("dllp", 0.5, protocol={**PROTOCOL, "epochs": 5}))
    assert "Add it to --methods" in line
    assert numbers(compared(*MINE, *runs("gp", 0.8, encoder=None, protocol=None), names=["gp"])[0]) == [0.0]


def test_unknown_rival_is_refused() -> None:
    with pytest.raises(LLPBenchError, match=r"'dlp'.*Did you mean dllp\?"):
        compared(*MINE, *runs("dllp", 0.8), names=["dlp"])


def test_rank_names_tasks_that_few_methods_have_run() -> None:
    published = {run["run"]: run for name in ("dllp", "llp-vat", "rot") for run in runs(name, 0.8, 0.8)}
    mine = {run["run"]: run for size in (64, 256) for run in runs("mine", 0.7, 0.7, bag_size=size)}
    (line,) = compare(mine, published).ranks()
    assert "rank 4 of 4, mean AUC 70.00 over 1 of its 2 tasks" in line
