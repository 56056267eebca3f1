"""Counts that are not those of the rows: refused inputs, and advice that works."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from districts import counted, people, silent, warned

from llpbench.core.errors import LLPBenchError
from llpbench.owndata.classifier import LLPClassifier

FRAME, BAGS, VOTES = people(400, 16)
TABLE = counted(BAGS, np.array(["no", "yes"])[VOTES])


def fitted(**given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(**{"X": FRAME, "bags": BAGS} | given)


def test_fewer_counts_than_rows_have_two_remedies() -> None:
    voted = TABLE // 2 + 1
    with pytest.raises(LLPBenchError, match=r"more rows than counted people.*as_shares=True") as error:
        fitted(counts=voted)
    assert "sampled=True" not in str(error.value)
    model = fitted(counts=voted, as_shares=True)
    share = voted.div(voted.sum(axis=1), axis=0)
    assert np.allclose(model.bag_counts_, fitted(proportions=share).bag_counts_)
    rest = voted.assign(none=TABLE.sum(axis=1) - voted.sum(axis=1))
    assert list(fitted(counts=rest).classes_) == ["no", "none", "yes"]
    percents = fitted(counts=100 * share, as_shares=True)
    assert np.allclose(percents.predict_proba(FRAME), model.predict_proba(FRAME))
    voted.loc["d03"] = 0
    assert np.isnan(fitted(counts=voted, as_shares=True).bag_counts_[list(model.bags_).index("d03")]).all()


def test_counts_in_thousands_have_a_remedy() -> None:
    for rows in (FRAME, FRAME.assign(rare=0)):  # a column of zeros does not add up to these counts
        with pytest.raises(LLPBenchError, match="other units, such as thousands") as error:
            fitted(X=rows, counts=TABLE / 1000)
        assert "adds up" not in str(error.value)
    assert np.allclose(fitted(counts=TABLE / 1000, as_shares=True).bag_counts_, TABLE)


def test_fractional_weights_have_a_remedy() -> None:
    weight = np.random.default_rng(0).uniform(0.5, 2, len(FRAME)).round(2)
    table = pd.DataFrame({"no": weight * (VOTES == 0), "yes": weight * (VOTES == 1)}).groupby(BAGS).sum()
    rows = FRAME.assign(weight=weight)
    for sampled in (False, True):
        with pytest.raises(LLPBenchError, match=r"'weight' .*sample_weight="):
            fitted(X=rows, counts=table.round(1), sampled=sampled)
    with warned("rounded weights"):
        assert np.allclose(fitted(X=rows, counts=table.round(1), sample_weight=weight).bag_sizes_, table.sum(axis=1))
    assert np.allclose(fitted(counts=table, as_shares=True).bag_sizes_, TABLE.sum(axis=1))


@pytest.mark.parametrize("factor", [1 / 25, 100 / 23, 1 / 1000])
def test_shares_are_not_taken_for_counts(factor: float) -> None:
    share = (TABLE["yes"] + 0.25) * factor
    with pytest.raises(LLPBenchError, match=r"must be whole numbers.*proportions="):
        fitted(counts=share)
    fitted(counts=TABLE["yes"].astype(float))
    fitted(counts=TABLE["yes"] + 0.25, noise=3.0)


def test_rounded_shares_may_miss_1() -> None:
    rng = np.random.default_rng(0)
    shares = pd.DataFrame(rng.dirichlet(np.ones(8), 16), index=TABLE.index, columns=list("abcdefgh"))
    for digits in (1, 3):
        rounded = shares.round(digits)
        assert (rounded.sum(axis=1) != 1).any()
        model = fitted(proportions=rounded)
        assert np.allclose(model.bag_counts_.sum(axis=1), model.bag_sizes_)
        rounded.iloc[3, 0] += 8 * 0.5 / 10**digits + 0.5
        with pytest.raises(LLPBenchError, match=r"must add up to 1\. 1 of 16 bags"):
            fitted(proportions=rounded)
    share = pd.DataFrame({"no": 0.48, "yes": 0.5}, index=TABLE.index)  # these miss it by exactly the tolerance
    share.iloc[0] = [0.481234, 0.501234]  # not rounded to a few digits
    assert 1 - 0.98 > 0.02
    assert np.allclose(fitted(proportions=share).bag_counts_.sum(axis=1), TABLE.sum(axis=1))
    with pytest.raises(LLPBenchError, match="Add a class for the rest"):
        fitted(proportions=share - 0.02)


def test_noise_keeps_checks() -> None:
    noisy = TABLE + np.random.default_rng(0).laplace(0, 2, TABLE.shape)
    fitted(counts=noisy, noise=2.8)
    for wrong in (noisy * 100, noisy - 60):
        with pytest.raises(LLPBenchError, match="a larger noise="):
            fitted(counts=wrong, noise=2.8)


def test_float_identifiers_are_refused() -> None:
    number = np.unique(BAGS, return_inverse=True)[1]
    bags = pd.Series(number.astype(np.int64) + 2**60)
    votes = {2**60 + place: int(each) for place, each in enumerate(TABLE["yes"])}
    assert len(fitted(bags=bags, counts=votes).bags_) == 16
    for floats in (bags.astype(float), pd.DataFrame({"a": bags.astype(float), "b": number})):
        with pytest.raises(LLPBenchError, match="exact identifiers"):
            fitted(bags=floats, counts=votes)


@pytest.mark.parametrize("persons", [0, 1])
def test_empty_class_raises_no_warning(persons: int) -> None:
    frame, bags, votes = people(600, 40)
    table = counted(bags, votes).assign(other=0)
    table.iloc[0] += [-persons, 0, persons]
    with silent("doubts"):
        model = LLPClassifier(params={"trees": 200, "rounds": 2}).fit(
            frame, bags, counts=table.set_axis([0, 1, 2], axis=1)
        )
    assert model.predict_proba(frame)[:, 2].mean() < 0.02


SHARES = TABLE.div(TABLE.sum(axis=1), axis=0)


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ({"counts": SHARES}, "Give shares as proportions="),
        ({"counts": (100 * SHARES).round(1)}, "as_shares=True"),
        ({"proportions": (100 * SHARES).round(1)}, "Divide percentages by 100"),
        ({"counts": TABLE.assign(other=3)}, "Without 'other'"),
        ({"counts": TABLE + np.outer(TABLE["yes"], [1, -1]) + [2, -2]}, "must not be negative"),
        ({"proportions": SHARES, "as_shares": True}, "as_shares=True"),
        ({"counts": TABLE, "noise": 1.0, "as_shares": True}, "as_shares=True"),
    ],
)
def test_advice_fits_fault_of_counts(given: dict[str, Any], advice: str) -> None:
    with pytest.raises(LLPBenchError, match=f"^[^\n]*{re.escape(advice)}[^\n]*$"):
        fitted(**given)


EIGHT: dict[str, Any] = {"X": pd.DataFrame({"age": range(40)}), "bags": np.repeat([f"b{n}" for n in range(8)], 5)}


def test_missing_count_is_named_with_remainder() -> None:
    yes = np.array([4.0, 3.0, 1.0, 3.0, 2.0, 3.0, 3.0, 3.0])
    counts = pd.DataFrame({"no": 5 - yes, "yes": yes}, index=[f"b{number}" for number in range(8)])
    counts.loc["b4", "yes"] = np.nan
    with warned("missing counts", r"'b4' \(count of 'yes'; with 5 rows and the other counts, it would be 2\)") as told:
        model = fitted(**EIGHT, counts=counts)
    assert "'no'" not in told[0]
    assert model.left_out_["suppressed"] == 1
    with warned("missing counts") as told:
        fitted(**EIGHT, counts=counts, noise=1)
    assert "with 5 rows" not in told[0]
    counts.loc[["b1", "b2", "b3"]] = np.nan
    with warned("missing counts", match=r"^4 bags .* 'b3' .* 1 more") as told:
        fitted(**EIGHT, counts=counts)
    assert "b4" not in told[0]


def test_ranges_are_not_missing_counts() -> None:
    counts: dict[str, Any] = {f"b{number}": 1 + number % 4 for number in range(8)}
    with silent("missing counts"):
        fitted(**EIGHT, counts=counts | {"b4": "1-3"})
        fitted(**EIGHT, counts=counts)
    with warned("missing counts", match="'b5'"):
        fitted(**EIGHT, counts=counts | {"b4": "1-3", "b5": np.nan})


@pytest.mark.parametrize("form", ["lines", "a line again", "two lines", "proportions"])
def test_lines_of_bags_are_not_people(form: str) -> None:
    rows = TABLE.assign(young=np.arange(16))
    names = {"lines": rows.index, "a line again": [*rows.index, "d00"], "two lines": [*rows.index, *rows.index]}
    bags = pd.Index(names.get(form, rows.index))
    share = TABLE["yes"].div(TABLE.sum(axis=1)).rename("share").to_frame()
    given = {"proportions": share} if form == "proportions" else {"counts": TABLE}
    for known in ({}, {"sampled": True}):
        with pytest.raises(LLPBenchError, match=r"Rows must be people.*cross_table"):
            fitted(X=rows.assign(share=share["share"]).loc[bags], bags=bags, **given, **known)
    with warned("one row per bag"):
        assert fitted(X=rows[["young"]], bags=rows.index, **given, sampled=True).bag_sizes_.sum() == 16


@pytest.mark.parametrize(
    ("counts", "advice", "remedy"),
    [
        (
            pa.table(TABLE.reset_index(names="d")),
            "counts.to_pandas().set_index('d')",
            lambda c: c.to_pandas().set_index("d"),
        ),
        (TABLE.stack().swaplevel(), "counts.swaplevel()", lambda c: c.swaplevel()),
        (TABLE.T, "counts.T", lambda c: c.T),
        (TABLE.to_dict(), "pandas.DataFrame(counts)", pd.DataFrame),
    ],
)
def test_advice_for_counts_in_other_forms_works(counts: Any, advice: str, remedy: Any) -> None:
    with pytest.raises(LLPBenchError, match=re.escape(f"ive {advice}")):
        fitted(counts=counts)
    assert np.array_equal(fitted(counts=remedy(counts)).bag_counts_, fitted(counts=TABLE).bag_counts_)


def test_rows_in_other_forms_have_a_remedy() -> None:
    model, bags = fitted(counts=TABLE), pd.Series(BAGS)
    with pytest.raises(LLPBenchError, match=r"pandas\.DataFrame\(X\)"):
        model.predict_proba(FRAME.to_dict("records"))
    with pytest.raises(LLPBenchError, match=r"bags\.loc\[X\.index\]"):
        fitted(X=FRAME[9:], bags=bags, counts=TABLE)
    with pytest.raises(LLPBenchError, match=r"entry 0 is 0 in bags and 9 in X"):
        fitted(X=FRAME.rename(index=lambda row: row + 9), bags=bags, counts=TABLE)
    with pytest.raises(LLPBenchError, match="'list'"):
        LLPClassifier("bag-gp").fit(FRAME, BAGS, counts=TABLE).estimate(FRAME, BAGS, by=pd.Series([["a"]] * 400))
