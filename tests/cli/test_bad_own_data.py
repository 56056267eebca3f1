"""Own data as people have them: read as they are meant, or refused in one clear line with exit code 2."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import DROPPED, LLPBench, done, refused, replaced
from districts import counted, rewritten

from llpbench import LLPClassifier
from llpbench.cli.reading_options import flag_of
from llpbench.core.errors import LLPBenchError, argument, either

pytestmark = pytest.mark.usefixtures("folder")
GIVEN = ["--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes", "--leave-out", "id"]
ROWS = 240
LINEAR = ["--method", "bag-mean-linear", "--out", "model"]
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
        ("fit", ["--types", "age=text", "--types", "age=number"], "'age'"),
        ("fit", ["--bag-column", "district+district"], "--bag-column"),
        ("estimate", ["--where", "owns=yes,owns=no"], "--where"),
        ("fit", ["--out", "rows.csv"], "'rows.csv': it exists"),
        ("fit", ["--skip-rows", "x"], "--skip-rows must be a whole number"),
        ("fit", ["--decimal", ",", "--decimal", "rows:."], "--decimal must be given once for ROWS"),
        ("fit", ["--bags", "bags.csv", "--bags", "bags.csv"], "--bag-column"),
        (
            "fit",
            [*2 * ["--bags", "bags.csv", "--bag-column", "district"], "--size-column", "yes"],
            "--size-column needs",
        ),
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
        ("estimate", ["--among", "yes"], "two classes"),
        ("estimate", ["--among", "yes,maybe"], "maybe"),
        ("estimate", ["--where", "sex=F"], "sex"),
        ("estimate", ["--where", "owns=maybe"], "owns"),
    ],
)
def test_invalid_options_are_refused(command: str, flags: list[str], told: str, llpbench: LLPBench) -> None:
    before = Path("rows.csv").read_bytes()
    assert told in refused(llpbench(*replaced(COMMANDS[command], flags)))
    assert Path("rows.csv").read_bytes() == before
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("command", "name", "harm", "flags", "told"),
    [
        ("fit", "rows", lambda f: f[["district", "id"]], [], "no feature is left in ROWS"),
        ("fit", "rows", lambda f: f.assign(district=["7.0", "7", *f["district"][2:]]), [], "got '7.0' and '7'"),
        ("fit", "rows", lambda f: f.assign(district=[77, *f["district"][1:]]), [], "use --drop-unmatched."),
        ("fit", "bags", lambda f: f.assign(district=100 + f.index), [], "'100', '101', '102'"),
        ("fit", "bags", lambda f: f[:1].mask(f[:1].notna()), [], "bags.csv"),
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
def test_invalid_files_are_refused(command: str, name: str, harm: Any, flags: Any, told: str, llpbench: Any) -> None:
    rewritten(f"{name}.csv", harm)
    assert told in refused(llpbench(*replaced(COMMANDS[command], flags)))
    assert not Path("model").exists()


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
def test_unwritable_output_is_reported_first(commands: list[str], out: str, told: str, llpbench: LLPBench) -> None:
    Path("folder.csv").mkdir()
    Path("closed").mkdir(mode=0o555)
    if out.startswith("closed") and os.access("closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    shutil.rmtree("fitted")
    rewritten("rows.csv", lambda rows: rows.query("district != 3"))  # a fit would refuse that
    for command in commands:
        assert told in refused(llpbench(*replaced(COMMANDS[command], ["--out", out])))


@pytest.mark.parametrize(("before", "line"), [("", 4), ("sep=,\n", 5), ("Votes of all districts\n\n", 6), (None, None)])
def test_wrong_count_is_located(before: str | None, line: int | None, llpbench: LLPBench) -> None:
    wrong = {"yes": lambda table: table["yes"].astype(str).mask(table.index == 2, "abc")}
    frame = rewritten("bags.csv", lambda table: table.assign(**wrong))
    if before is None:
        frame.to_parquet("bags.csv")  # the content decides
    else:
        Path("bags.csv").write_text(before + Path("bags.csv").read_text())
    result = llpbench(*COMMANDS["fit"])
    *_, message = result.err.splitlines()
    found = f"in line {line} " in message, f"bag '{frame['district'][2]}'" in message
    assert (result.code, *found) == (2, bool(line), True)


def test_predict_without_bags_needs_model_and_features(llpbench: LLPBench) -> None:
    for model, told in ("of-an-array", "fitted to an array"), ("absent", "'absent'"):
        assert told in refused(llpbench("predict", model, *COMMANDS["predict"][2:]))
    flags = [*COMMANDS["predict"], "--bag-column", "branch"]
    assert "Omit --bag-column" in refused(llpbench(*flags))
    assert "Omit" not in refused(llpbench(*flags, "--whole-bags"))
    rewritten("rows.csv", lambda rows: rows.drop(columns="age"))
    assert "Omit" not in refused(llpbench(*replaced(flags, ["--bag-column", "district"])))


def test_shell_shows_flags_only_for_arguments() -> None:
    error = LLPBenchError(f"bag 'time=' of {argument('X')}: use {argument('time=')}{either(' now', ' here')}.")
    assert str(error) == "bag 'time=' of X: use time= now."
    assert error.in_shell(flag_of) == "bag 'time=' of ROWS: use --time-column here."
    assert LLPBenchError(argument("noise") + " must be positive.").argument == "noise"


@pytest.fixture
def rows(folder: Path) -> pd.DataFrame:
    """Rows whose income decides their vote; bags are in `bags.csv`, rows in `rows.csv`."""
    rng, district = np.random.default_rng(0), np.arange(ROWS) // 12
    income = (20_000 + 2_000 * district + rng.normal(0, 5_000, ROWS)).round().astype(int)
    frame = pd.DataFrame({"district": district, "income": income, "town": rng.choice(["S\u00fcd", "n"], ROWS)})
    frame["district"] = frame["district"].map("D{:02}".format)
    counted(frame["district"], np.where(income > 40_000, "yes", "no")).to_csv("bags.csv")
    frame.to_csv(folder / "rows.csv", index=False)
    return frame


def fit(llpbench: LLPBench, *flags: str, command: str = "fit", rows: str = "rows.csv", bags: str = "bags.csv") -> Any:
    given = ["--bags", bags, "--bag-column", "district", *(LINEAR if command == "fit" else [])]
    return llpbench(command, rows, *replaced([*given, "--counts", "no,yes"], flags))


def probabilities(llpbench: LLPBench, rows: str) -> Any:
    done(llpbench("predict", "model", rows, "--out", "new.csv"))
    return pd.read_csv("new.csv").filter(like="probability").to_numpy()


@pytest.mark.parametrize("command", ["fit", "choose"])
def test_advice_on_few_texts_works(command: str, rows: pd.DataFrame, llpbench: LLPBench) -> None:
    income = rows["income"].map("{:,}".format).where(rows.index != 7, "n/a?")
    rows.assign(income=income).to_csv("text.csv", index=False)
    message = refused(fit(llpbench, command=command, rows="text.csv"))
    assert [part in message for part in ("'income'", "'n/a?' in line 9 ", "1 of 240", "X[")] == [True] * 3 + [False]
    advice = re.findall(r"use (--.+?)\.(?: |$)", message)
    assert len(advice) == 2
    for flags in advice:
        assert "used as categories" not in done(fit(llpbench, *shlex.split(flags), rows="text.csv")).err


def test_missing_marks_in_rows_are_read(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    gap = rows.index % 20 == 0
    rows.assign(income=rows["income"].mask(gap)).to_csv("gaps.csv", index=False)
    done(fit(llpbench, rows="gaps.csv"))
    expected = probabilities(llpbench, "gaps.csv")
    rows.assign(income=rows["income"].astype(str).mask(gap, "-")).to_csv("marked.csv", index=False)
    assert "'-' for missing" in fit(llpbench, rows="marked.csv").err
    for flags in (["--types", "income=number"], ["--missing", "-,."]):
        done(fit(llpbench, *flags, rows="marked.csv"))
        assert np.allclose(probabilities(llpbench, "marked.csv"), expected)


def test_new_file_is_read_like_fit_file(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    """41,132 alone may be either: what fit has assumed holds."""
    text = rows.assign(income=[f"{each / 1000:.3f}".replace(".", ",") for each in rows["income"]])
    text.assign(income=text["income"].where(text.index > 0, "0,5")).to_csv("text.csv", index=False)
    done(fit(llpbench, "--types", "income=number", "--decimal", ",", rows="text.csv"))
    text.iloc[1:5].to_csv("new-rows.csv", index=False)
    new = rows[["income", "town"]].assign(income=rows["income"] / 1000).iloc[1:5]
    assert np.allclose(probabilities(llpbench, "new-rows.csv"), LLPClassifier.load("model").predict_proba(new))


@pytest.mark.usefixtures("rows")
def test_written_counts_are_read_or_have_remedy(llpbench: LLPBench) -> None:
    table, texts = pd.read_csv("bags.csv"), pd.read_csv("bags.csv", dtype=str)
    for mark, number in ((" 1,200 ", 1200), ("1 200", 1200), ("1.200.000", 1_200_000)):
        texts.assign(no=[mark, *texts["no"][1:]]).to_csv("counts.csv", index=False)
        result, told = fit(llpbench, bags="counts.csv"), f"column 'no': '{mark.strip()}' is {number}"
        assert (result.code, told in result.err, "--suppressed" in result.err) == (2, True, False)
    texts.assign(no=["<1,000", "(D)", *texts["no"][2:]]).to_csv("counts.csv", index=False)
    advised = fit(llpbench, bags="counts.csv").err.partition("--suppressed '")[2].partition("'")[0]
    done(fit(llpbench, "--suppressed", advised, bags="counts.csv"))  # every mark is advised at once
    table.assign(yes=table["yes"].astype(object).mask(table["yes"] < 6, "<6")).to_csv("counts.csv", index=False)
    for marks, ranges in ([], True), (["--suppressed", "<6"], False):
        told = done(fit(llpbench, "--counts", "yes", *marks, bags="counts.csv")).err
        known = np.isfinite(LLPClassifier.load("model").bag_counts_[table["yes"] < 6]).all()
        assert ("'<6'" in told, known) == (ranges, ranges)
    table.assign(no=table["no"] // 2, yes=table["yes"] // 2).to_csv("counts.csv", index=False)
    message = refused(fit(llpbench, bags="counts.csv"))
    assert ("--as-shares" in message, "--sampled" in message) == (True, False)
    done(fit(llpbench, "--as-shares", bags="counts.csv"))
    table[::-1].assign(yes=(table["yes"] / 0.12).map("{:.1f} % ".format)).to_csv("counts.csv", index=False)
    assert re.search("'yes'.*--proportions", refused(fit(llpbench, "--counts", "yes", bags="counts.csv")))
    told = done(fit(llpbench, "--counts", DROPPED, "--proportions", "yes", bags="counts.csv")).err
    assert "'100.0 %' is 1." in told
    assert np.allclose(LLPClassifier.load("model").bag_counts_[:, 1], table["yes"], atol=0.1)


def test_predictions_are_not_read_as_parts(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    Path("parts").mkdir()
    rows.to_csv("parts/1.csv", index=False)
    done(fit(llpbench, rows="parts"))
    for name in ("parts", "parts/*.csv"):
        assert "parts/new.csv" in refused(llpbench("predict", "model", name, "--out", "parts/new.csv"))
        assert not Path("parts/new.csv").exists()


def test_special_column_names_work(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    rewritten("bags.csv", lambda table: table.set_axis([" area+zone", "Doe, Jane", "Roe, Richard "], axis=1))
    rows.rename(columns={"district": "area+zone", "income": "income, EUR"}).to_csv("named.csv", index=False)
    for keys, counts in (("area+zone", '"Doe, Jane","Roe, Richard"'), (" area+zone", '"Doe, Jane", "Roe, Richard"')):
        flags = ["--types", "income, EUR=number", "--bag-column", keys, "--counts", counts]
        done(fit(llpbench, *flags, rows="named.csv"))
        assert list(LLPClassifier.load("model").classes_) == ["Doe, Jane", "Roe, Richard"]
    done(llpbench("predict", "model", "named.csv", "--bag-column", "area+zone", "--out", "new.csv"))
    assert list(pd.read_csv("new.csv").columns)[:2] == ["area+zone", "prediction"]


def test_rows_that_stand_for_several_people_are_weighted(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    cells = rows.assign(income=rows["income"] // 9000).groupby([*rows.columns]).size().rename("people").reset_index()
    cells.to_csv("cells.csv", index=False)
    message = refused(fit(llpbench, rows="cells.csv"))
    assert ("--weight-column people" in message, "--sampled" in message) == (True, False)
    weight = ["--weight-column", "people"]
    assert "240 people" in done(fit(llpbench, *weight, "--method", "bag-gp", "--set", "draws=0", rows="cells.csv")).out
    model, yes = LLPClassifier.load("model"), pd.read_csv("bags.csv")["yes"]
    assert (model.bag_counts_[:, 1].tolist(), [*model.feature_names_in_]) == (yes.tolist(), ["income", "town"])
    asked = ["model", "cells.csv", "--bag-column", "district", "--out", "new.csv"]
    refused(llpbench("predict", *asked, *weight))  # without --whole-bags
    refused(llpbench("predict", *asked, "--whole-bags"))  # without the weights of fit
    done(llpbench("predict", *asked, "--whole-bags", *weight))
    found = pd.read_csv("new.csv")
    assert np.allclose(found.groupby("district")["count_yes"].sum(), yes)
    assert np.allclose(found["count_yes"] + found["count_no"], found["people"])
    done(llpbench("estimate", *asked, "--by", "town", *weight))
    assert pd.read_csv("new.csv")["rows"].iloc[:4].sum() == 2 * ROWS
    cells.assign(people=cells["people"].mask(cells.index == 3)).to_csv("cells.csv", index=False)
    assert "a missing value in column 'people'" in refused(fit(llpbench, *weight, rows="cells.csv"))
    assert "in column 'town'" in refused(fit(llpbench, "--weight-column", "town", rows="cells.csv"))


def test_shared_keys_may_be_features(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    county = (rows.index // 60).map({0: "NA", 1: "01", 2: "1", 3: "x"})
    rows.assign(county=county).to_csv("rows.csv", index=False)
    rewritten("bags.csv", lambda table: table.assign(county=county[::12]))
    keys, asked = ["--bag-column", "county+district"], ["predict", "model", "rows.csv", "--out", "new.csv"]
    for flags, features in ([], []), (["--keep-key", "--leave-out", "district"], ["county"]):
        done(fit(llpbench, *keys, *flags))
        model = LLPClassifier.load("model")
        assert list(model.feature_names_in_) == ["income", "town", *features]
        assert done(llpbench(*asked)).err == ""
    assert model._model.columns.categories[1] == ["01", "1", "NA", "x"]
    expected = model.predict_proba(rows[["income", "town"]].assign(county=county))
    assert np.allclose(pd.read_csv("new.csv")["probability_yes"], expected[:, 1])
    done(llpbench(*asked, *keys))
