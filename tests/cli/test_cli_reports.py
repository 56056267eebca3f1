"""The commands that only read journals: report, merge, compare; and running a study."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench import LLPBench
from factory import PROTOCOL, fine_alone, record, runs

from llpbench.core.record import Record
from llpbench.results.journal import FILE, Contents, Journal
from llpbench.results.merging import journal_files


def journal(folder: Path, *records: Record) -> Path:
    """A folder with the journal of runs, judged by AUC alone."""
    with Journal(folder) as opened:
        for each in fine_alone(records):
            opened.append(each)
    return folder


def test_study_run_shows_paper_numbers(llpbench: LLPBench, tmp_path: Path) -> None:
    words = "run --study fine-grained --methods supervised,dllp --encoders mlp --datasets adult --bag-sizes 1024"
    words += " --seeds 1 --epochs 1 --executor debug --out"
    done = llpbench.succeed(*words.split(), str(tmp_path))
    assert "Fine-grained results: ordered · bags of 1024 · encoder mlp · at most 1 epoch" in done.out
    methods = [run["spec"]["method"] for run in Contents.read(tmp_path / FILE).records.values()]
    assert sorted(methods) == ["dllp", "supervised"]
    again = llpbench(*words.replace("fine-grained", "robustness").split(), str(tmp_path))
    assert "0 runs to do in 0 cells, 1 done" in again.err + again.out  # what one study ran, no other runs
    shown = llpbench("report", "--no-plots", "--study", "pretraining,encoder", "--out", str(tmp_path))
    assert "Pretraining: ordered · bags of 1024" in shown.out
    assert "Nothing of this study has run yet. Run it with: llpbench run --study" in " ".join(shown.out.split())


def test_report_merges_several_journals(llpbench: LLPBench, tmp_path: Path) -> None:
    first = journal(tmp_path / "a", *runs("dllp", 0.8, 0.82))
    second = journal(tmp_path / "b", *runs("mine", 0.9, 0.88))
    out, plots = tmp_path / "out", tmp_path / "pictures"
    words = ["report", "--journal", str(first), "--journal", str(second), "--out", str(out), "--plots", str(plots)]
    done = llpbench.succeed(*words)
    assert "mine" in done.out
    assert "dllp" in (out / "index.html").read_text()
    assert not (out / FILE).exists()
    assert {path.suffix for path in plots.glob("[!.]*")} == {".svg"}


def test_only_generated_files_are_ever_deleted(llpbench: LLPBench, tmp_path: Path) -> None:
    folder = journal(tmp_path, *runs("dllp", 0.8, 0.7), *runs("mine", 0.6, 0.7))
    llpbench.succeed("report", "--out", str(folder))
    assert {path.suffix for path in (tmp_path / "plots").glob("[!.]*")} == {".svg"}
    (tmp_path / "plots" / "mine.png").write_text("mine")
    (tmp_path / FILE).unlink()
    journal(tmp_path, *runs("dllp", 0.8, 0.7, bagging="random"), *runs("mine", 0.6, 0.7, bagging="random"))
    llpbench.succeed("report", "--out", str(folder))
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"mine.png", "time-fine-random.svg"} <= names
    assert not any("ordered" in name for name in names)
    assert {name for name in names if name.endswith(".png")} == {"mine.png"}


def test_out_is_a_folder_whatever_its_name(llpbench: LLPBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    journal(tmp_path / "core", record("mine", 0.8))
    assert "mine" in llpbench.succeed("report", "--no-plots", "--out", "core").out
    assert "./core" in llpbench("report", "--no-plots", "--journal", "core", "--out", "other").err


def test_disputed_journals_are_reported(llpbench: LLPBench, tmp_path: Path) -> None:
    first, second = journal(tmp_path / "a", record("dllp", 0.8)), journal(tmp_path / "b", record("dllp", 0.7))
    merged = llpbench.succeed("merge", str(first), str(second), "--out", str(tmp_path / "both"))
    assert merged.out.startswith("1 run, 1 of them")
    done = llpbench("report", "--no-plots", "--out", str(tmp_path / "both"))
    flag = (
        "dllp mlp on adult ordered 64, seed 0: 2 different results, test AUC 80.0000, 70.0000; more than 2 points apart"
    )
    assert flag in done.err
    assert flag in (tmp_path / "both" / "index.html").read_text()
    chosen = llpbench("merge", str(tmp_path / "both"), "--out", str(tmp_path / "both"), "--prefer", "first")
    assert chosen.out.startswith("1 run, 0 of them")
    assert "80.00" in llpbench("report", "--no-plots", "--out", str(tmp_path / "both")).out


def test_compare_ranks_own_method_among_published(llpbench: LLPBench, tmp_path: Path) -> None:
    there = (run["spec"] for run in Contents.read(*journal_files("core")).records.values())
    spec = next(each for each in there if (each["method"], each["bag_size"]) == ("tabllp-bdc", 256))
    mine = record("mine", 0.5, dataset=spec["dataset"], bag_size=spec["bag_size"], protocol=spec["protocol"])
    done = llpbench.succeed("compare", "--out", str(journal(tmp_path, mine)))
    told, first, *others = done.out.splitlines()
    assert re.match(r"Compared with \w+, which has 1 of your 1 task", told)
    assert first.startswith("mine (mlp): no rank, because ")
    assert any(re.match(r"mine \(mlp\) minus dllp \(mlp.*\): [-+]\d+\.\d, 1 seed, ", line) for line in others)
    flags = dict(re.findall(r"--([a-z-]+) (\S+)", first))
    assert spec["dataset"] in flags["datasets"].split(",")
    training = {"encoders", "pretraining", "numbers", "epochs", "patience"}
    assert {*flags} == {"methods", "datasets", "baggings", "bag-sizes", "seeds", *training}
    assert done.out.count("\n") <= 45
    assert "yours" in done.out
    assert "tabllp-bdc" in done.out
    other = llpbench("compare", "--out", str(journal(tmp_path / "b", record("mine", protocol=PROTOCOL))))
    assert re.match(r"mine \(mlp\): rank \d+ of \d+, mean AUC", other.out.splitlines()[1])
    assert "Published networks were trained with another protocol" in other.out
    assert "tabllp-bdc" not in other.out  # boards without your runs are left out


def test_compare_shows_paper_numbers(llpbench: LLPBench, tmp_path: Path) -> None:
    folder = journal(tmp_path, *runs("dllp", 0.88, 0.86, bag_size=256, encoder="saint"))
    done = llpbench.succeed("compare", "--against", "paper", "--out", str(folder))
    assert "paper 87.61 ± 0.21" in done.out
    assert "87.00 ± 1.41 (2)" in done.out


def test_report_ranks_by_requested_metric(llpbench: LLPBench, tmp_path: Path) -> None:
    made = [*runs("dllp", 0.8, 0.8), *runs("mine", 0.9, 0.9)]
    for run in made:
        accuracy = 0.7 if run["spec"]["method"] == "mine" else 0.6
        for result in run["results"].values():
            result["test"] |= {"brier": 1 - accuracy, "accuracy": accuracy}
        run["results"]["auc"]["test"]["accuracy"] = 1.3 - accuracy
    folder = journal(tmp_path, *made)
    for metric, first in (("auc", "mine"), ("accuracy", "dllp"), ("brier", "mine")):
        llpbench.succeed("report", "--no-plots", "--out", str(folder), "--metric", metric)
        table = (folder / "README.md").read_text(encoding="utf-8")
        assert f"| 1 | {first} (mlp) |" in table
    wrong = llpbench("report", "--no-plots", "--out", str(folder), "--metric", "average-precison")
    assert wrong.code == 2
    assert "average-precision" in wrong.err
