"""`llpbench fit` and `predict` with files as people have them: read as they are meant, or refused in a line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import LLPBench, done

from llpbench import LLPClassifier

ROWS = 240
LINEAR = ["--method", "bag-mean-linear", "--out", "model"]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Rows whose income decides their vote; bags are in `bags.csv`, rows in `rows.csv`."""
    rng = np.random.default_rng(0)
    district = np.arange(ROWS) // 12
    income = (20_000 + 2_000 * district + rng.normal(0, 5_000, ROWS)).round().astype(int)
    frame = pd.DataFrame(
        {
            "district": [f"D{each:02d}" for each in district],
            "income": income,
            "town": rng.choice(["S\u00fcd", "n"], ROWS),
        }
    )
    yes = pd.Series(income > 40_000).groupby(frame["district"]).sum()
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"no": 12 - yes, "yes": yes}).rename_axis("district").reset_index().to_csv("bags.csv", index=False)
    frame.to_csv("rows.csv", index=False)
    return frame


def fit(llpbench: LLPBench, *flags: str, rows: str = "rows.csv", bags: str = "bags.csv", counts: str = "no,yes") -> Any:
    return llpbench("fit", rows, "--bags", bags, "--bag-column", "district", "--counts", counts, *LINEAR, *flags)


def probabilities(llpbench: LLPBench, rows: str) -> Any:
    done(llpbench("predict", "model", rows, "--out", "new.csv"))
    return pd.read_csv("new.csv").filter(like="probability").to_numpy()


@pytest.mark.parametrize("command", ["fit", "choose"])
def test_advice_on_few_texts_works(command: str, rows: pd.DataFrame, llpbench: LLPBench) -> None:
    text = rows.assign(income=rows["income"].map("{:,}".format))
    text.loc[7, "income"] = "n/a?"
    text.to_csv("text.csv", index=False)
    given = ["--bags", "bags.csv", "--bag-column", "district", "--counts", "no,yes"]
    result = llpbench(command, "text.csv", *given, *(LINEAR if command == "fit" else []))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert all(part in result.err for part in ("'income'", "'n/a?' in line 9 ", "1 of 240"))
    advice = re.findall(r"use (--.+?)\.(?: |$)", result.err.strip())
    assert len(advice) == 2
    assert "X[" not in result.err
    for flags in advice:
        result = fit(llpbench, *shlex.split(flags), rows="text.csv")
        assert (result.code, "used as categories" in result.err) == (0, False)


def test_missing_marks_in_rows_are_read(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    rows.assign(income=rows["income"].where(rows.index % 20 > 0)).to_csv("gaps.csv", index=False)
    assert fit(llpbench, rows="gaps.csv").code == 0
    expected = probabilities(llpbench, "gaps.csv")
    marked = rows.astype({"income": str})
    marked.assign(income=marked["income"].where(rows.index % 20 > 0, "-")).to_csv("marked.csv", index=False)
    assert "'-' for missing" in fit(llpbench, rows="marked.csv").err
    for flags in (["--types", "income=number"], ["--missing", "-,."]):
        assert fit(llpbench, *flags, rows="marked.csv").code == 0
        assert np.allclose(probabilities(llpbench, "marked.csv"), expected)


def test_new_file_is_read_like_fit_file(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    """41,132 alone may be either: what fit has assumed holds."""
    text = rows.assign(income=[f"{each / 1000:.3f}".replace(".", ",") for each in rows["income"]])
    text.assign(income=text["income"].where(text.index > 0, "0,5")).to_csv("text.csv", index=False)
    assert fit(llpbench, "--types", "income=number", "--decimal", ",", rows="text.csv").code == 0
    model = LLPClassifier.load("model")
    text.iloc[1:5].to_csv("new-rows.csv", index=False)
    found = probabilities(llpbench, "new-rows.csv")
    expected = model.predict_proba(rows[["income", "town"]].assign(income=rows["income"] / 1000).iloc[1:5])
    assert np.allclose(found, expected)


def test_written_counts_are_read_or_have_remedy(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    del rows
    table, texts = pd.read_csv("bags.csv"), pd.read_csv("bags.csv", dtype=str)
    for mark, number in (("1,200", 1200), ("1 200", 1200), ("1.200.000", 1_200_000)):
        texts.assign(no=[mark, *texts["no"][1:]]).to_csv("counts.csv", index=False)
        result = fit(llpbench, bags="counts.csv")
        assert (result.code, "--suppressed" in result.err) == (2, False)
        assert f"'{mark}' is {number}" in result.err
    texts.assign(no=["<1,000", "(D)", *texts["no"][2:]]).to_csv("counts.csv", index=False)
    advised = fit(llpbench, bags="counts.csv").err.partition("--suppressed '")[2].partition("'")[0]
    assert fit(llpbench, "--suppressed", advised, bags="counts.csv").code == 0, "every mark is advised at once"
    table.assign(no=table["no"] // 2, yes=table["yes"] // 2).to_csv("counts.csv", index=False)
    result = fit(llpbench, bags="counts.csv")
    assert (result.code, "--as-shares" in result.err, "--sampled" in result.err) == (2, True, False)
    assert fit(llpbench, "--as-shares", bags="counts.csv").code == 0
    table.assign(yes=[f"{100 * each / 12:.1f}%" for each in table["yes"]]).to_csv("counts.csv", index=False)
    command = ["fit", "rows.csv", "--bags", "counts.csv", "--bag-column", "district", *LINEAR]
    assert "--proportions" in llpbench(*command, "--counts", "yes").err
    assert llpbench(*command, "--proportions", "yes").code == 0
    assert np.allclose(LLPClassifier.load("model").bag_counts_[:, 1], table["yes"], atol=0.1)


def test_predictions_are_not_read_as_parts(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    Path("parts").mkdir()
    rows.to_csv("parts/1.csv", index=False)
    assert fit(llpbench, rows="parts").code == 0
    for name in ("parts", "parts/*.csv"):
        result = llpbench("predict", "model", name, "--out", "parts/new.csv")
        assert result.code == 2
        assert "parts/new.csv" in result.err
        assert not Path("parts/new.csv").exists()


def test_special_column_names_work(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    table = pd.read_csv("bags.csv").set_axis([" area+zone", "Doe, Jane", "Roe, Richard "], axis=1)
    table.to_csv("votes.csv", index=False)
    rows.rename(columns={"district": "area+zone", "income": "income, EUR"}).to_csv("named.csv", index=False)
    command = ["fit", "named.csv", "--bags", "votes.csv", *LINEAR, "--types", "income, EUR=number"]
    for keys, counts in (("area+zone", "Doe, Jane,Roe, Richard"), (" area+zone", '"Doe, Jane","Roe, Richard"')):
        done(llpbench(*command, "--bag-column", keys, "--counts", counts))
        assert list(LLPClassifier.load("model").classes_) == ["Doe, Jane", "Roe, Richard"]
    done(llpbench("predict", "model", "named.csv", "--bag-column", "area+zone", "--out", "new.csv"))
    assert list(pd.read_csv("new.csv").columns)[:2] == ["area+zone", "prediction"]


WHOLE = ["predict", "model", "cells.csv", "--bag-column", "district", "--out", "new.csv"]


def test_rows_that_stand_for_several_people_are_weighted(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    assert fit(llpbench).code == 0
    counts = LLPClassifier.load("model").bag_counts_
    cells = rows.assign(income=rows["income"] // 9000).groupby([*rows.columns]).size().rename("people").reset_index()
    cells.to_csv("cells.csv", index=False)
    result = fit(llpbench, rows="cells.csv")
    assert (result.code, "--weight-column people" in result.err, "--sampled" in result.err) == (2, True, False)
    result = fit(llpbench, "--weight-column", "people", "--method", "bag-gp", "--set", "draws=0", rows="cells.csv")
    assert (result.code, "240 people" in result.out) == (0, True), result.err
    model = LLPClassifier.load("model")
    assert np.array_equal(model.bag_counts_, counts)
    assert list(model.feature_names_in_) == ["income", "town"]
    of_bags = pd.Series(model.bag_counts_[:, 1], index=model.bags_).sort_index()
    assert llpbench(*WHOLE, "--weight-column", "people").code == 2  # without --whole-bags
    assert llpbench(*WHOLE, "--whole-bags").code == 2  # without the weights of fit
    done(llpbench(*WHOLE, "--whole-bags", "--weight-column", "people"))
    found = pd.read_csv("new.csv")
    assert len(found) == len(cells)
    assert np.allclose(found.groupby("district")["count_yes"].sum(), of_bags)
    assert np.allclose(found["count_yes"] + found["count_no"], found["people"])
    groups = ["estimate", "model", "cells.csv", "--bag-column", "district", "--by", "town"]
    done(llpbench(*groups, "--weight-column", "people", "--out", "groups.csv"))
    assert pd.read_csv("groups.csv")["rows"].iloc[:4].sum() == 2 * ROWS
    cells.assign(people=cells["people"].mask(cells.index == 3)).to_csv("cells.csv", index=False)
    result = fit(llpbench, "--weight-column", "people", rows="cells.csv")
    assert (result.code, "a missing value in column 'people'" in result.err) == (2, True)
    result = fit(llpbench, "--weight-column", "town", rows="cells.csv")
    assert (result.code, "in column 'town'" in result.err) == (2, True)


def test_shared_keys_may_be_features(rows: pd.DataFrame, llpbench: LLPBench) -> None:
    county = (rows.index // 60).map({0: "NA", 1: "01", 2: "1", 3: "x"})
    rows.assign(county=county).to_csv("rows.csv", index=False)
    pd.read_csv("bags.csv").assign(county=county[::12]).to_csv("bags.csv", index=False)
    keys = ["--bag-column", "county+district"]
    command = ["fit", "rows.csv", "--bags", "bags.csv", *keys, "--counts", "no,yes", *LINEAR]
    asked = ["predict", "model", "rows.csv", "--out", "new.csv"]
    kept = ["--keep-key", "--leave-out", "district"]
    for flags, features in (([], ["income", "town"]), (kept, ["income", "town", "county"])):
        assert llpbench(*command, *flags).code == 0
        assert list(LLPClassifier.load("model").feature_names_in_) == features
        result = llpbench(*asked)
        assert (result.code, result.err) == (0, "")
    assert LLPClassifier.load("model")._model.columns.categories[1] == ["01", "1", "NA", "x"]
    by_feature = pd.read_csv("new.csv")["probability_yes"]
    expected = LLPClassifier.load("model").predict_proba(rows[["income", "town"]].assign(county=county))
    assert np.allclose(by_feature, expected[:, 1])
    assert llpbench(*asked, *keys).code == 0
