"""What people give `llpbench fit` and `llpbench predict` by mistake: one clear line each, and exit code 2."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import DROPPED, LLPBench, replaced
from districts import counted, people

from llpbench import LLPClassifier

FIT = ["--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--out", "model"]
Harm = Callable[[pd.DataFrame], Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows.csv, bags.csv, and a model of them."""
    folder = tmp_path_factory.mktemp("own")
    frame, bags, votes = people(120, 8)
    rows = frame.assign(district=bags)
    table = counted(bags, np.array(["no", "yes"])[votes]).rename_axis("district").reset_index()
    rows.to_csv(folder / "rows.csv", index=False)
    table.to_csv(folder / "bags.csv", index=False)
    model = LLPClassifier("count-gbdt", params={"trees": 100})
    model.fit(frame, bags, counts=table.set_index("district")).save(folder / "fitted")
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(saved, tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path / "own"


def told_off(result: Any) -> str:
    """The one line of what was refused."""
    assert result.code == 2, result.err
    assert "Traceback" not in result.err
    (line,) = result.err.strip().splitlines()
    return str(line)


@pytest.mark.parametrize(
    ("name", "harm", "flags", "told"),
    [
        ("rows", lambda _: "", [], "'rows.csv' is empty"),
        ("rows", lambda _: "a,b\n1,2\n1,2,3\n", [], "3 values in line 3"),
        ("rows", lambda _: 'a,b\n1,2\n"1,2\n', [], "in line 3"),
        ("rows", lambda f: f.iloc[:0], [], "'rows.csv' has no rows"),
        ("rows", lambda f: f[["district"]], [], "no feature is left in ROWS"),
        ("rows", lambda f: f.assign(district=["7.0", "7", *f["district"][2:]]), [], "got '7.0' and '7'"),
        ("rows", lambda f: f.rename(columns={"owns": "age.1"}), ["--leave-out", "owns"], "has no column 'owns'"),
        ("rows", None, ["--types", "age=txt"], "must be text or number, got 'age=txt'"),
        ("rows", None, ["--types", "height=number"], "has no column 'height'"),
        ("bags", lambda _: "", [], "'bags.csv' is empty"),
        ("bags", lambda f: f.iloc[:0], [], "counts are empty"),
        ("bags", lambda f: f.assign(district=f.index), [], "'0', '1', '2'"),
        ("bags", lambda f: f.assign(district=f["district"].str.zfill(5)), [], "'00d00'"),
        ("bags", lambda f: pd.concat([f, f.iloc[:1]]), [], "bag 'd00' again in line 10"),
        ("bags", lambda f: f.assign(yes=f["yes"] + 1), [], "If ROWS is only a sample of the rows, use --sampled"),
        ("bags", lambda f: f.assign(yes=f["yes"].astype(object).where(f.index > 0, "*")), [], "--suppressed '*'"),
        ("bags", lambda f: f.assign(yes=np.inf), [], "got 'inf'"),
        (
            "bags",
            lambda f: f.assign(yes=50),
            ["--counts", DROPPED, "--proportions", "yes"],
            "bag 'd00' has the proportion 50",
        ),
        ("bags", None, ["--proportions", "yes"], "--counts and --proportions"),
        ("bags", None, ["--class-column", "party"], "got no, yes"),
        ("bags", None, ["--class-column", "party", "--counts", "yes"], "has no column 'party'"),
        ("bags", None, ["--classes", "no,maybe"], "the given classes are 'no', 'maybe'"),
        ("bags", None, ["--sampled", "--counts", "yes"], "Give --size-column of the bags"),
        ("bags", lambda f: f.assign(size=9), ["--size-column", "size"], "has 9 rows"),
        ("bags", None, ["--noise", "much"], "'much' is not a valid float"),
        ("bags", None, ["--set", "trees=many", "--method", "count-gbdt"], "trees"),
        ("bags", None, ["--repeat-column", "age", "--weight-column", "age"], "--repeat-column and --weight-column"),
        ("bags", None, ["--repeat-column", "district"], "--repeat-column and --bag-column"),
        ("bags", None, ["--encoder", "mlp"], "'bag-mean-linear' has no encoder"),
        ("bags", None, ["--bags", "bags.xlsx"], "there is no file 'bags.xlsx'"),
        ("bags", None, ["--bags", "fitted"], "folder 'fitted' has no table"),
        ("bags", None, ["--plugin", "mine.py"], "mine.py"),
    ],
)
def test_what_cannot_be_fitted(
    name: str, harm: Harm | None, flags: list[str], told: str, folder: Path, llpbench: LLPBench
) -> None:
    file = folder / f"{name}.csv"
    if harm:
        made = harm(pd.read_csv(file))
        file.write_text(made if isinstance(made, str) else made.to_csv(index=False))
    line = told_off(llpbench("fit", "rows.csv", *replaced([*FIT, "--method", "bag-mean-linear"], flags)))
    assert told in line
    assert not (folder / "model").exists()


@pytest.mark.parametrize(
    ("harm", "flags", "told"),
    [
        (lambda f: f.drop(columns="age"), [], "has no column 'age'"),
        (lambda f: f.assign(age="old"), [], "column 'age' must be numeric, got 'old' in line 2 "),
        (None, ["--bag-column", "distrikt"], "has no column 'distrikt'. Did you mean district?"),
        (None, ["--repeat-column", "age", "--weight-column", "age"], "--repeat-column and --weight-column"),
        (None, ["--counts", "no,yes"], "need --bags"),
        (None, ["--bags", "bags.csv"], "--bags needs --whole-bags"),
        (None, ["--whole-bags"], "Add --bag-column"),
        (lambda f: f.drop(index=0), ["--whole-bags", "--bag-column", "district"], "has 17 rows, but had 18 in fit"),
        (lambda f: f.assign(district="Ulm"), ["--whole-bags", "--bag-column", "district"], "('Ulm') was not in fit"),
        (lambda f: f.assign(prediction=1), [], "'rows.csv' already has a column 'prediction', which predictions would"),
    ],
)
def test_what_cannot_be_predicted(
    harm: Harm | None, flags: list[str], told: str, folder: Path, llpbench: LLPBench
) -> None:
    if harm:
        harm(pd.read_csv(folder / "rows.csv")).to_csv(folder / "rows.csv", index=False)
    assert told in told_off(llpbench("predict", "fitted", "rows.csv", "--out", "new.csv", *flags))


@pytest.mark.usefixtures("folder")
def test_a_model_of_an_array_predicts_no_file(llpbench: LLPBench) -> None:
    LLPClassifier("bag-mean-linear").fit([[0.0], [1.0]], [0, 1], counts=[0, 1]).save("of-an-array")
    told = told_off(llpbench("predict", "of-an-array", "rows.csv", "--out", "new.csv"))
    assert "was fitted to an array" in told


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("new.json", "'new.json' must end in .csv or .parquet"),
        ("there/new.csv", "'there/new.csv' cannot be written: there is no folder 'there'."),
        ("bags.csv/new.csv", "bags.csv' is a file. Choose another name."),
        ("folder.csv", "'folder.csv' is a folder. Choose another name."),
        ("closed/new.csv", "closed' is read-only. Choose another name."),
    ],
)
def test_an_unwritable_output_of_predictions_is_reported_before_anything_is_read(
    out: str, told: str, folder: Path, llpbench: LLPBench
) -> None:
    (folder / "folder.csv").mkdir()
    (folder / "closed").mkdir(mode=0o555)
    if out.startswith("closed") and os.access(folder / "closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    assert told in told_off(llpbench("predict", "gone", "gone.csv", "--out", out))


def test_predictions_never_overwrite_an_input_file(folder: Path, llpbench: LLPBench) -> None:
    before = (folder / "rows.csv").read_bytes()
    told = "--out 'rows.csv' is one of the input files"
    assert told in told_off(llpbench("predict", "fitted", "rows.csv", "--out", "rows.csv"))
    assert (folder / "rows.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("out", "told"),
    [("closed/new", "is read-only"), ("bags.csv/new", "bags.csv' is a file."), ("/proc/absent", "/proc/absent")],
)
def test_an_unwritable_output_is_reported_before_fits(out: str, told: str, folder: Path, llpbench: LLPBench) -> None:
    (folder / "closed").mkdir(mode=0o555)
    if out.startswith("closed") and os.access(folder / "closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    pd.read_csv("rows.csv").query("district != 'd03'").to_csv("rows.csv", index=False)  # a fit would refuse that
    for command in ("fit", "choose"):
        assert told in told_off(llpbench(command, "rows.csv", *FIT[:-1], out))


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda f: shutil.rmtree(f), "manifest.json"),
        (lambda f: (f / "manifest.json").write_text("{}"), "manifest.json' is damaged"),
    ],
)
def test_a_folder_without_a_model_is_one_line(
    harm: Callable[[Path], Any], told: str, folder: Path, llpbench: LLPBench
) -> None:
    harm(folder / "fitted")
    assert told in told_off(llpbench("predict", "fitted", "rows.csv", "--out", "new.csv"))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--method", "bag-gp", "--encoder", "saint"], "has no encoder, got --encoder saint"),
        (["--noise", "1e308"], "from 0 to 1e+12"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_no_method_can_use_is_refused(llpbench: LLPBench, flags: list[str], told: str) -> None:
    assert told in told_off(llpbench("fit", "rows.csv", *FIT, "--method", "count-gbdt", *flags))


@pytest.mark.usefixtures("folder")
def test_numbers_too_small_for_squares_are_read(llpbench: LLPBench) -> None:
    frame = pd.read_csv("rows.csv")
    frame.assign(age=frame.index * 1e-300).to_csv("rows.csv", index=False)
    result = llpbench("fit", "rows.csv", *FIT, "--method", "bag-mean-linear")
    assert result.code == 0, result.err


@pytest.mark.parametrize(("before", "line"), [("", 4), ("sep=,\n", 5), ("Votes of all districts\n\n", 6), (None, None)])
def test_a_wrong_count_is_located_by_line_and_bag(
    before: str | None, line: int | None, folder: Path, llpbench: LLPBench
) -> None:
    frame = pd.read_csv("bags.csv").astype({"yes": object})
    frame.loc[2, "yes"] = "abc"
    name = "bags.csv" if line else "bags.parquet"
    if before is None:
        frame.astype({"yes": str}).to_parquet(folder / name)
    else:
        (folder / name).write_text(before + frame.to_csv(index=False))
    result = llpbench("fit", "rows.csv", *replaced(FIT, ["--bags", name]))
    assert result.code == 2
    told = result.err.splitlines()[-1]
    assert (f"in line {line} " in told) == bool(line)
    assert f"bag {frame['district'][2]!r}" in told


def test_only_features_can_do_without_bags(folder: Path, llpbench: LLPBench) -> None:
    flags = ["predict", "fitted", "rows.csv", "--bag-column", "branch", "--out", "new.csv"]
    assert "Omit --bag-column" in told_off(llpbench(*flags))
    assert "Omit" not in told_off(llpbench(*flags, "--whole-bags"))
    pd.read_csv(folder / "rows.csv").drop(columns="age").to_csv(folder / "rows.csv", index=False)
    assert "Omit" not in told_off(llpbench(*replaced(flags, ["--bag-column", "district"])))
