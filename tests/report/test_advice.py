"""Which method for my data: what is advised follows from the runs alone."""

from __future__ import annotations

from typing import Any

from factory import record, runs

from llpbench.core.record import Record
from llpbench.report.advice import advice
from llpbench.report.report_table import ReportTable
from llpbench.report.tabulate import tabulate


def advised(records: list[Record]) -> ReportTable:
    table = advice(tabulate(records))
    assert table is not None
    return table


def lines(table: ReportTable) -> list[dict[str, tuple[str, ...]]]:
    return [
        {heading.text: field.lines for heading, field in zip(table.headings, row, strict=True)} for row in table.rows
    ]


def test_the_best_mean_is_taken_with_all_that_are_alike() -> None:
    direct: dict[str, Any] = {"encoder": None, "times": {"train": 2.0, "total": 9.0}}
    (line,) = lines(
        advised(
            [
                *runs("trees", 0.80, 0.82, bags={"number": 40}, **direct),
                *runs("close", 0.807, 0.807, **direct),
                *runs("further", 0.80, 0.80, **direct),
                *runs("network", 0.70, 0.70),
                *runs("supervised", 0.99, 0.99, role="ceiling"),
                *runs("network", 0.95, 0.95, pretraining="bag"),
            ]
        )
    )
    assert line["take"] == ("trees", "close")
    assert line["AUC"] == ("81.0 ± 1.4 (2)",)
    assert line["next best, best network"] == ("further 80.0", "only network network 70.0")
    assert (line["rows of a bag"], line["training bags"], line["datasets"]) == (("64",), ("20",), ("adult",))
    assert line["95 % CI of rank"] == ("1–4", "1–2"), "close is always ahead of further and network"
    assert line["caution"] == ("–",)


def test_a_mean_that_may_be_chance_is_said_to_be_that() -> None:
    (line,) = lines(advised([*runs("a", 0.55, 0.65), *runs("b", 0.5, 0.5)]))
    assert line["caution"] == ("60.0 is within two standard deviations of chance",)
    assert line["take"] == ("none",)
    assert line["next best, best network"] == ("a 60.0",)
    (line,) = lines(advised([*runs("a", 0.59, 0.61), *runs("b", 0.5, 0.5)]))
    assert line["take"] == ("a",)
    (line,) = lines(advised([*runs("a", 0.51), *runs("b", 0.44)]))
    assert (line["take"], line["next best, best network"]) == (("none",), ("a 51.0",)), "rows hardly differ"
    assert advice(tabulate(runs("a", 0.9))) is None, "nothing to compare with"


def test_a_dataset_on_which_another_leads_is_named() -> None:
    records = [
        *runs("one", 0.9, dataset="adult"),
        *runs("one", 0.7, dataset="credit"),
        *runs("other", 0.6, dataset="adult"),
        *runs("other", 0.75, dataset="credit"),
    ]
    (line,) = lines(advised(records))
    assert line["take"] == ("one",)
    assert line["caution"] == ("credit: 70.0, but other 75.0",)


def test_who_leads_on_a_dataset_is_judged_on_the_seeds_that_all_share() -> None:
    records = [
        *(line for name, value in (("one", 0.9), ("other", 0.6), ("third", 0.5)) for line in runs(name, value, value)),
        *runs("one", 0.8, 0.8, 0.2, dataset="credit"),
        *runs("other", 0.8, 0.8, dataset="credit"),
        *runs("third", 0.5, 0.5, dataset="credit"),
    ]
    (line,) = lines(advised(records))
    assert line["take"] == ("one",)
    assert line["caution"] == ("–",)


def test_a_bags_share_that_says_as_much_as_features_is_named() -> None:
    share = record("bag-share", 0.5, role="floor", encoder=None)
    share["results"]["auc"]["test"]["auc-known-bags"] = 0.72
    (line,) = lines(advised([*runs("a", 0.71), share]))
    assert line["caution"] == ("the proportions of a row's own bag alone have 72.0",)


def test_entries_without_auc_are_not_advised_on_a_board_of_another_metric() -> None:
    records = [*runs("a", 0.8, 0.82), *runs("b", 0.7, 0.72), *runs("c", 0.9, 0.9)]
    for run in records:
        for result in run["results"].values():
            if run["spec"]["method"] == "c":
                del result["test"]["auc"]
            result["test"]["accuracy"] = 0.6 if run["spec"]["method"] == "c" else 0.5
    table = advice(tabulate(records, metric="accuracy"))
    assert table is not None
    assert [line["take"] for line in lines(table)] == [("a",)]
