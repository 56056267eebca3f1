"""What people give the commands on their own data by mistake: one clear line each, and exit code 2."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bench import DROPPED, LLPBench, refused, replaced

from llpbench.cli.reading_options import flag_of
from llpbench.core.errors import LLPBenchError, argument, either

GIVEN = ["--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--leave-out", "id"]
TWO_METHODS = ["--methods", "bag-mean-linear,bag-soft-label-linear"]
GROUPS = ["--bag-column", "district", "--by", "owns", "--out", "groups.csv"]
WHOLE = ["--whole-bags", "--bag-column", "district"]
COMMANDS = {
    "fit": ["fit", "rows.csv", *GIVEN, "--method", "bag-mean-linear", "--out", "model"],
    "predict": ["predict", "fitted", "rows.csv", "--out", "new.csv"],
    "choose": ["choose", "rows.csv", *GIVEN, *TWO_METHODS],
    "estimate": ["estimate", "process", "rows.csv", *GROUPS],
}


@pytest.mark.parametrize(
    ("command", "flags", "told"),
    [
        ("fit", ["--types", "height=number"], "has no column 'height'"),
        ("fit", ["--bag-column", "distrikt"], "has no column 'distrikt'. Did you mean district?"),
        ("fit", ["--separator", "|"], "use --separator bags:','"),
        ("fit", ["--counts", "no,y\nes"], "must be one line"),
        ("fit", ["--proportions", "yes"], "--counts and --proportions"),
        ("fit", ["--class-column", "party"], "got no, yes"),
        ("fit", ["--set", "trees"], "--set must be NAME=VALUE"),
        ("fit", ["--out", "rows.csv"], "'rows.csv': it exists"),
        ("fit", ["--skip-rows", "x"], "--skip-rows must be a whole number"),
        ("fit", ["--decimal", ",", "--decimal", "rows:."], "--decimal must be given once for ROWS"),
        ("fit", ["--bags", "bags.csv", "--bags", "bags.csv"], "--bag-column"),
        ("predict", ["--counts", "no,yes"], "need --bags"),
        ("predict", ["--bags", "bags.csv"], "--bags needs --whole-bags"),
        ("predict", ["--whole-bags"], "Add --bag-column"),
        ("predict", ["--out", "rows.csv"], "input files"),
        ("predict", [*WHOLE, "--out-of-core", "--drop-unmatched"], "--out-of-core"),
        ("estimate", ["--out-of-core", "--drop-unmatched"], "--out-of-core"),
        ("choose", ["--bag-column", ""], "--bag-column must name a column, got ''"),
        ("fit", ["--seed", "-1"], "--seed must be"),
        ("choose", ["--time-column", "month"], "month"),
        ("estimate", ["--bag-column", DROPPED], "--bag-column"),
        ("estimate", ["--plot", "groups.txt"], "groups.txt"),
        ("estimate", ["--class", "yes"], "--plot"),
        ("estimate", ["--plot", "groups.svg", "--class", "maybe"], "no, yes"),
    ],
)
def test_invalid_options_are_refused(
    command: str, flags: list[str], told: str, folder: Path, llpbench: LLPBench
) -> None:
    before = (folder / "rows.csv").read_bytes()
    assert told in refused(llpbench(*replaced(COMMANDS[command], flags)))
    assert (folder / "rows.csv").read_bytes() == before
    assert not (folder / "model").exists()


@pytest.mark.parametrize(
    ("command", "name", "harm", "flags", "told"),
    [
        ("fit", "rows", lambda f: f[["district", "id"]], [], "no feature is left in ROWS"),
        ("fit", "rows", lambda f: f.assign(district=["7.0", "7", *f["district"][2:]]), [], "got '7.0' and '7'"),
        ("fit", "rows", lambda f: f.assign(district=[77, *f["district"][1:]]), [], "use --drop-unmatched."),
        ("fit", "bags", lambda f: f.assign(district=100 + f.index), [], "'100', '101', '102'"),
        ("fit", "bags", lambda f: pd.concat([f, f.iloc[:1]]), [], "bag '0' again in line 14"),
        ("fit", "bags", lambda f: f.assign(yes=f["yes"] + 1), [], "only a sample of the rows, use --sampled"),
        ("fit", "bags", lambda f: f.assign(yes=["*", *f["yes"][1:]]), [], "--suppressed '*'"),
        ("predict", "rows", lambda f: f.drop(columns="age"), [], "has no column 'age'"),
        ("predict", "rows", lambda f: f.assign(age="old"), [], "column 'age' must be numeric, got 'old' in line 2 "),
        ("predict", "rows", lambda f: f.assign(prediction=1), [], "already has a column 'prediction', which"),
        ("predict", "rows", lambda f: f.drop(index=0), WHOLE, "28 rows"),
        ("predict", "rows", lambda f: f.assign(district="Ulm"), WHOLE, "('Ulm') was not in fit"),
        ("choose", "rows", lambda f: f.assign(day=2000 + f.index), ["--time-column", "day"], "200"),
    ],
)
def test_invalid_files_are_refused(
    command: str, name: str, harm: Callable[[Any], Any], flags: list[str], told: str, folder: Path, llpbench: LLPBench
) -> None:
    harm(pd.read_csv(folder / f"{name}.csv")).to_csv(folder / f"{name}.csv", index=False)
    assert told in refused(llpbench(*replaced(COMMANDS[command], flags)))
    assert not (folder / "model").exists()


def test_folder_without_model_is_refused(folder: Path, llpbench: LLPBench) -> None:
    (folder / "damaged").mkdir()
    (folder / "damaged" / "model.skops").write_text("{}")
    models = {"of-an-array": "fitted to an array", "absent": "model.skops", "damaged": "the model in 'damaged' is damaged"}
    for model, told in models.items():
        assert told in refused(llpbench("predict", model, *COMMANDS["predict"][2:]))


@pytest.mark.parametrize(
    ("commands", "out", "told"),
    [
        (["predict"], "new.json", "'new.json' must end in .csv or .parquet"),
        (["predict"], "there/new.csv", "'there/new.csv' cannot be written: there is no folder 'there'."),
        (["predict"], "folder.csv", "'folder.csv' is a folder. Choose another name."),
        (["predict", "fit"], "bags.csv/new.csv", "bags.csv' is a file."),
        (["predict", "fit"], "closed/new.csv", "is read-only"),
        (["fit"], "/proc/absent", "/proc/absent"),
    ],
)
def test_unwritable_output_is_reported_first(
    commands: list[str], out: str, told: str, folder: Path, llpbench: LLPBench
) -> None:
    (folder / "folder.csv").mkdir()
    (folder / "closed").mkdir(mode=0o555)
    if out.startswith("closed") and os.access(folder / "closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    shutil.rmtree(folder / "fitted")
    pd.read_csv("rows.csv").query("district != 3").to_csv("rows.csv", index=False)  # a fit would refuse that
    for command in commands:
        assert told in refused(llpbench(*replaced(COMMANDS[command], ["--out", out])))


@pytest.mark.parametrize(("before", "line"), [("", 4), ("sep=,\n", 5), ("Votes of all districts\n\n", 6), (None, None)])
def test_wrong_count_is_located(before: str | None, line: int | None, folder: Path, llpbench: LLPBench) -> None:
    frame = pd.read_csv("bags.csv").astype({"yes": str})
    frame.loc[2, "yes"] = "abc"
    name = "bags.csv" if line else "bags.parquet"
    if before is None:
        frame.to_parquet(folder / name)
    else:
        (folder / name).write_text(before + frame.to_csv(index=False))
    result = llpbench(*replaced(COMMANDS["fit"], ["--bags", name]))
    assert result.code == 2
    told = result.err.splitlines()[-1]
    assert (f"in line {line} " in told) == bool(line)
    assert f"bag '{frame['district'][2]}'" in told


def test_predict_without_bags_needs_features(folder: Path, llpbench: LLPBench) -> None:
    flags = [*COMMANDS["predict"], "--bag-column", "branch"]
    assert "Omit --bag-column" in refused(llpbench(*flags))
    assert "Omit" not in refused(llpbench(*flags, "--whole-bags"))
    pd.read_csv(folder / "rows.csv").drop(columns="age").to_csv(folder / "rows.csv", index=False)
    assert "Omit" not in refused(llpbench(*replaced(flags, ["--bag-column", "district"])))


def test_shell_shows_flags_only_for_arguments() -> None:
    error = LLPBenchError(f"bag 'time=' of {argument('X')}: use {argument('time=')}{either(' now', ' here')}.")
    assert str(error) == "bag 'time=' of X: use time= now."
    assert error.in_shell(flag_of) == "bag 'time=' of ROWS: use --time-column here."
    assert LLPBenchError(argument("noise") + " must be positive.").argument == "noise"
