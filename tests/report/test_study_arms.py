"""A study that changes one factor at a time: its table, and the change along each arm."""

from __future__ import annotations

from typing import Any

from factory import PROTOCOL, record

from llpbench.core.record import Record
from llpbench.core.studies import STUDIES
from llpbench.report.report_table import Field, ReportTable
from llpbench.report.statistics import interval
from llpbench.report.study_tables import study_tables

STUDY = STUDIES["bag-number"]
AUC = {(13, 64): 0.6, (13, 256): 0.7, (13, 1024): 0.72, (26, 256): 0.75, (52, 256): 0.8, (208, 64): 0.9}


def journal(method: str = "bag-gp", encoder: str | None = None, **facts: Any) -> list[Record]:
    """A method on every level, which of another seed or dataset is a little worse."""
    found = []
    for place, dataset in enumerate(facts.pop("datasets", ("adult", "credit", "electricity"))):
        for (number, size), auc in AUC.items():
            for seed in range(facts.get("seeds", 2)):
                worse = 0.01 * place * (size == 1024) + 0.002 * seed
                found.append(
                    record(
                        method,
                        auc - worse - facts.get("less", 0.0),
                        dataset=dataset,
                        bag_size=size,
                        max_bags=number,
                        seed=seed,
                        encoder=encoder,
                        **{name: value for name, value in facts.items() if name not in ("seeds", "less")},
                    )
                )
    return found


def tables(records: list[Record]) -> tuple[ReportTable, ReportTable]:
    scores, arms = study_tables(STUDY, records)
    return scores.table, arms.table


def field(table: ReportTable, column: int, *labels: str) -> Field:
    return next(row[column] for row in table.rows if tuple(each.lines[0] for each in row[: len(labels)]) == labels)


def test_a_level_holds_runs_of_its_number_of_bags_alone() -> None:
    others = [record("bag-gp", 0.5, bag_size=256, encoder=None, seed=seed) for seed in (7, 8)]  # of all bags
    scores, _ = tables([*journal(), *others])
    assert field(scores, 2, "bag-gp", "13 of 256").lines == ("69.90 ± 0.14 (2)",)
    assert scores.caption.count("Not one of the paper's studies") == 1
    whole = study_tables(STUDIES["bag-size"], journal("dllp", "mlp"))
    assert whole == [], "runs of fewer bags are of no other study"


def test_the_ends_of_an_arm_are_compared_dataset_by_dataset() -> None:
    _, arms = tables(journal())
    assert [heading.text for heading in arms.headings] == [
        "method",
        "13 of 64 → 13 of 1024",
        "13 of 256 → 52 of 256",
        "208 of 64 → 13 of 1024",
    ]
    size, number, rows = (field(arms, column, "bag-gp") for column in (1, 2, 3))
    low, high = interval([12.0, 11.0, 10.0])
    assert size.lines == (f"+11.0 [{low:.1f}, {high:.1f}]", "3 datasets")
    assert number.lines == ("+10.0 [10.0, 10.0]", "3 datasets")
    assert rows.lines[0].startswith("-19.0 ")


def test_of_a_single_dataset_seeds_are_compared_and_one_seed_has_no_interval() -> None:
    records = journal(datasets=("adult",), seeds=3)
    records[0] = record("bag-gp", 0.65, bag_size=64, max_bags=13, encoder=None)
    size = field(tables(records)[1], 1, "bag-gp")
    low, high = interval([7.0, 12.0, 12.0])
    assert size.lines == (f"+10.3 [{low:.1f}, {high:.1f}]", "adult, 3 seeds")
    assert field(tables(journal(datasets=("adult",), seeds=1))[1], 1, "bag-gp").lines == ("+12.0", "adult, 1 seed")


def test_methods_without_epochs_stand_beside_those_with_any() -> None:
    short = {**PROTOCOL, "epochs": 30}
    records = [*journal(), *journal("llp-vat", "mlp"), *journal("dllp", "mlp", protocol=short)]
    found = [made.table for made in study_tables(STUDY, records) if made.table.name.endswith("-arms")]
    assert [[row[0].lines[0] for row in table.rows] for table in found] == [["bag-gp", "dllp"], ["bag-gp", "llp-vat"]]


def test_ensembles_have_tables_of_their_own_whatever_the_order_of_records() -> None:
    single, several = journal("dllp", "mlp"), journal("dllp", "mlp", ensemble=5, less=0.1)
    orders = [[*single, *several], [*several, *single]]
    found = [
        {made.table.title: [row[1].lines[0] for row in made.table.rows] for made in study_tables(STUDY, each)}
        for each in orders
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 4
    assert sum("ensembles of 5" in title for title in found[0]) == 2
    alone = {made.table.title: [row[1].lines[0] for row in made.table.rows] for made in study_tables(STUDY, single)}
    assert alone.items() <= found[0].items()


def test_an_end_that_is_lacking_leaves_a_gap() -> None:
    _, arms = tables([run for run in journal() if run["spec"]["bag_size"] != 1024])
    assert [each.lines[0] for each in arms.rows[0]] == ["bag-gp", "–", "+10.0 [10.0, 10.0]", "–"]
