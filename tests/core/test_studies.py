"""The studies as declarations: their cells, what flags choose of them, and that they speak the paper's language."""

from __future__ import annotations

from typing import Any

import pytest

from llpbench.core.cell import Cell
from llpbench.core.criteria import CRITERIA
from llpbench.core.errors import LLPBenchError
from llpbench.core.studies import STUDIES, select
from llpbench.data.facts import built_in_facts
from llpbench.data.splits import training_bags
from llpbench.report.reference import reference
from llpbench.report.study_runs import MEASURES
from llpbench.running.planning import expand
from llpbench.running.settings import PRETRAININGS, resolve
from llpbench.training.specification import changed, make_cell


def cells(study: str, **flags: Any) -> list[Cell]:
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    return expand(resolve({"study": study, "datasets": "adult", **named}))


@pytest.mark.parametrize("study", [study for study in STUDIES.values() if study.lines], ids=lambda study: study.name)
def test_every_study_names_cells_that_can_be_made(study: Any) -> None:
    found = cells(study.name)
    assert len({cell.id for cell in found}) == len(found)
    assert {cell.method for cell in found} == {line.fixed["method"] for line in study.lines}
    assert all(cell.protocol is None or cell.protocol.epochs == 300 for cell in found)
    for line in study.lines:
        assert line.fixed["criterion"] in CRITERIA
        assert line.fixed["measure"] in MEASURES
        assert set(line.pretrainings) <= set(PRETRAININGS)


@pytest.mark.parametrize("study", [study for study in STUDIES.values() if study.reference and study.lines], ids=str)
def test_every_row_that_the_paper_prints_is_a_line(study: Any) -> None:
    printed = reference(study.reference)
    assert set(printed.factors) <= set(study.factors)
    places = [list(study.factors).index(factor) for factor in printed.factors]
    lines = {tuple(line.labels[place] for place in places) for line in study.lines}
    rows = {labels for labels, _ in printed.values}
    only_theirs = {("TabLLP-BDC (fine-grained validation)",)}  # repeats the fine-grained table
    assert rows - only_theirs == lines


def test_the_paper_is_the_union() -> None:
    assert select("all") == list(STUDIES.values())
    assert select("paper") == [study for study in STUDIES.values() if study.from_paper]
    assert {study.name for study in STUDIES.values() if not study.from_paper} == {"bag-number"}
    every = {cell.id for study in select("paper") if study.lines for cell in cells(study.name)}
    assert {cell.id for cell in cells("paper")} == every


def test_studies_share_cells() -> None:
    fine = {cell.id for cell in cells("fine-grained")}
    assert {cell.id for cell in cells("robustness")} < fine
    assert {cell.id for cell in cells("coarse-grained,class-awareness,mpiou-auc")} <= fine
    # the generator by default is the fine-grained table's BDC
    assert len({cell.id for cell in cells("pair-generator")} & fine) == 1


def test_what_a_line_fixes_becomes_part_of_its_cell() -> None:
    (greedy,) = (cell for cell in cells("pair-generator") if cell.params["generator"] == "greedy")
    assert (greedy.pretraining, changed(greedy)) == ("self+bag", {"generator": "greedy"})
    found = {(c.pretraining_params["aggregator"], c.pretraining_params["projection"]) for c in cells("aggregation")}
    assert len(found) == 4
    assert {cell.bag_size for cell in cells("bag-size", methods="dllp")} == {64, 128, 256, 512, 1024}


class TestArms:
    STUDY = STUDIES["bag-number"]

    def test_one_thing_alone_changes_along_an_arm(self) -> None:
        levels = [*self.STUDY.factors.values()][-1]
        arms = [[tuple(levels[name].values()) for name in arm.levels] for arm in self.STUDY.arms]
        larger, more, larger_of_the_same_rows = arms
        assert larger == [(13, 64), (13, 256), (13, 1024)]
        assert more == [(13, 256), (26, 256), (52, 256)]
        assert larger_of_the_same_rows == [(208, 64), (52, 256), (13, 1024)]
        assert [arm.varies for arm in self.STUDY.arms] == ["bag_size", "max_bags", "bag_size"]

    def test_every_dataset_has_as_many_bags_and_the_smallest_no_more(self) -> None:
        left = [
            training_bags(built_in_facts()[name].rows, level["bag_size"]) - level["max_bags"]
            for name in ("credit", "california", "electricity", "adult")
            for level in [*self.STUDY.factors.values()][-1].values()
            if level["max_bags"] != 26 and (level["max_bags"], level["bag_size"]) not in ((13, 64), (13, 256))
        ]
        assert left[:3] == [0, 0, 0], "all that credit has of 1024, 256 and 64 rows"
        assert min(left) == 0


def test_flags_set_what_a_study_leaves_open_and_narrow_what_it_names() -> None:
    found = cells("bag-size", encoders="mlp", bag_sizes="64,256,4096", methods="dllp,llp-gan", epochs=100, seeds=3)
    assert {(c.method, c.bag_size, c.encoder) for c in found} == {
        ("dllp", 64, "mlp"),
        ("dllp", 256, "mlp"),
        ("llp-gan", 64, None),
        ("llp-gan", 256, None),
    }
    assert {c.protocol.epochs for c in found if c.protocol} == {100}
    assert {c.bag_size for c in cells("fine-grained", bag_sizes=64)} == {64}
    assert {c.pretraining for c in cells("pretraining", pretraining="bag,none")} == {"bag", "none"}
    some = cells("paper", methods="dllp", encoders="mlp")  # studies without a selected cell do not matter among others
    assert {(c.method, c.encoder) for c in some} == {("dllp", "mlp")}


def test_a_study_has_the_papers_preset_and_fixes_its_hyperparameters() -> None:
    assert resolve({"study": "encoder"}).seeds == tuple(range(10))
    assert resolve({"study": "encoder"}, preset="quick").seeds == (0, 1, 2)
    with pytest.raises(LLPBenchError, match="--set and --study cannot be combined"):
        cells("encoder", set=("dllp.learning_rate=0.5",))


def test_nothing_left_of_a_study_is_an_error_that_names_its_parts() -> None:
    with pytest.raises(LLPBenchError, match=r"--study encoder.*--encoders .*saint-row"):
        cells("encoder", encoders="mlp")


def test_the_text_of_a_cell_has_what_differs_from_the_defaults() -> None:
    how: dict[str, Any] = {"bag_size": 64, "encoder": "mlp", "pretraining": "bag"}
    assert changed(make_cell("tabllp-bdc", "adult", **how)) == {}
    how |= {"params": {"weight": 2.0}, "pretraining_params": {"view": "separated"}}
    assert changed(make_cell("tabllp-bdc", "adult", **how)) == {"weight": 2.0, "pretraining.view": "separated"}
    assert changed(make_cell("bag-mean-linear", "adult", bag_size=64, params={"strength": 3.0})) == {"strength": 3.0}
