"""Counts of bags in whatever form owners have them, also as ranges: read right, refused, or named in a warning."""

from __future__ import annotations

import re
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bench import refusal
from districts import counted, people, reloaded, silent, warned
from scipy.stats import betabinom

from llpbench import LLPClassifier, choose
from llpbench.data.bag_tables import near_names
from llpbench.data.reading_bags import _require_clear_order
from llpbench.owndata.count_ranges import CountRanges
from llpbench.tables.number_text import MOST, Range

FRAME, BAGS, VOTES = people(600, 40)
NAMES = np.array(["no", "yes"])[VOTES]
TABLE = counted(BAGS, NAMES)
LONG = TABLE.rename_axis(index="district", columns="party").stack()
SIZES, YES = TABLE.sum(axis=1), TABLE["yes"]
SHARES = TABLE.div(SIZES, axis=0)
SMALL, NUMBER = YES.to_numpy() < 8, np.unique(BAGS, return_inverse=True)[1]
RANGES = YES.astype(object).mask(SMALL, "<8")
WITH_GAP = TABLE.drop("d05").reindex(TABLE.index)
PEOPLE = 1 + np.arange(600) % 7 + 20 * VOTES
VOTERS = {"X": FRAME.assign(people=PEOPLE), "counts": counted(BAGS.repeat(PEOPLE), NAMES.repeat(PEOPLE))}
LARGE, OF_LARGE = pd.Series(NUMBER + 2**60), YES.set_axis(2**60 + np.arange(40)).to_dict()


def fitted(**given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(**{"X": FRAME, "bags": BAGS} | given)


def test_noisy_counts_are_accepted_later_and_still_checked(tmp_path: Path) -> None:
    noisy = TABLE + np.random.default_rng(0).normal(0, 2, TABLE.shape)
    told = fitted(counts=noisy, noise=2.0)
    for model in (told, reloaded(told, tmp_path)):
        assert np.isfinite([*model.score_bags(FRAME, BAGS, counts=noisy).values()]).all()
        for method in (model.disaggregate, model.assign):  # counts of fit are these
            assert np.array_equal(method(FRAME, BAGS, counts=noisy), method(FRAME, BAGS))
    with refusal(r"^bag .* rows, but its counts"):
        fitted(counts=TABLE).disaggregate(FRAME, BAGS, counts=noisy)


def test_objects_are_numbers_and_foreign_frames_match_by_name() -> None:
    wide, found = fitted(counts=TABLE), fitted(X=FRAME.astype({"age": object}), counts=TABLE)
    for rows, model in (FRAME, found), (FRAME[7:8].T.T, wide):  # a transposed row is one of objects
        assert np.array_equal(model.predict_proba(rows), wide.predict_proba(FRAME.loc[rows.index]))
    foreign = pa.Table.from_pandas(FRAME, preserve_index=False)
    found = fitted(X=foreign, bags=pa.chunked_array([pa.array(BAGS)]), counts=TABLE)
    assert list(found.feature_names_in_) == [*FRAME.columns]
    assert np.allclose(found.predict_proba(foreign.select([*FRAME.columns[::-1]])), wide.predict_proba(FRAME))


def test_sampled_rows_use_proportions_of_whole_bag() -> None:
    sample: dict[str, Any] = {"X": FRAME[200:], "bags": BAGS[200:]}
    plain = fitted(**sample, proportions=SHARES)
    one = {"counts": YES, "sizes": SIZES, "classes": ["no", "yes"]}
    for given in ({"counts": TABLE}, {"proportions": SHARES, "sizes": SIZES}, one):
        assert np.allclose(fitted(**sample, **given, sampled=True).bag_counts_, plain.bag_counts_)
    with refusal(r"its size is .* 39 of 40 bags.*sampled="):
        fitted(**sample, proportions=SHARES, sizes=SIZES)


@pytest.mark.parametrize(("impossible", "offered"), [(1, True), (37, True), (38, False)])
def test_impossible_counts_are_suppressed_on_request_if_two_bags_remain(impossible: int, offered: bool) -> None:
    wrong = WITH_GAP.index.drop("d05")[:impossible]
    table = WITH_GAP.add(pd.Series(17, wrong).reindex(WITH_GAP.index, fill_value=0), axis=0)
    with refusal(f"^bag 'd00' .* {impossible} of 40 bags") as error:
        fitted(counts=table)
    assert ("impossible='suppress'" in str(error.value)) == offered
    with nullcontext() if offered else refusal("at least 2 bags must have known counts"):
        model = fitted(counts=table, impossible="suppress")
        assert model.left_out_ == {"rows": 0, "bags": 0, "suppressed": 1, "impossible": impossible}
        known = fitted(counts=table.drop(wrong).reindex(table.index))
        assert np.array_equal(model.predict_proba(FRAME), known.predict_proba(FRAME))


def test_dropped_rows_are_counted() -> None:
    more = pd.concat([LONG, pd.Series({("d03", "void"): 4, ("d99", "yes"): 7})])
    lost = BAGS[0] == BAGS
    bags = np.where(lost, np.where(np.arange(600) == 0, "nowhere", "d77"), BAGS)
    model = fitted(bags=bags, counts=more, classes=["no", "yes"], unmatched="drop")
    assert model.left_out_ == {"rows": lost.sum(), "bags": 2, "suppressed": 0, "impossible": 0}
    assert list(model.classes_) == ["no", "yes"]
    alone = fitted(X=FRAME[~lost], bags=BAGS[~lost], counts=TABLE.drop(BAGS[0]))
    assert np.array_equal(model.predict_proba(FRAME), alone.predict_proba(FRAME))


def test_suppressed_bags_are_predicted_but_not_trained_on() -> None:
    model, rows = fitted(counts=WITH_GAP), BAGS == "d05"
    alone = fitted(X=FRAME[~rows], bags=BAGS[~rows], counts=WITH_GAP.dropna())
    assert np.allclose(model.predict_proba(FRAME), alone.predict_proba(FRAME), atol=0.02)
    assert np.array_equal(model.disaggregate(FRAME, BAGS)[rows], model.predict_proba(FRAME)[rows])
    assert np.array_equal(model.assign(FRAME, BAGS)[rows], model.predict(FRAME)[rows])
    withheld = fitted(counts=TABLE.to_dict("index") | {"d05": {}})
    assert np.array_equal(withheld.bag_counts_, model.bag_counts_, equal_nan=True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"counts": pd.concat([LONG, LONG[:1]])}, "two entries for class 'no' of bag 'd00'"),
        ({"counts": LONG.rename({"no": None}, level=1)}, "40 of 80 counts have no bag or no class"),
        ({"counts": LONG, "classes": ["no"]}, "have the classes 'no', 'yes', but .* are 'no'.*unmatched='drop'"),
        ({"counts": TABLE.add_prefix("district ", axis=0), "unmatched": "drop"}, "no bag of X .* has counts"),
        ({"counts": TABLE, "sizes": SIZES.drop("d01")}, r"sizes must be known .* got none for 1 bag \('d01'\)"),
        ({"counts": TABLE, "sizes": SIZES + 2}, r"^bag 'd00' has \d+ rows, but its counts"),
        ({"counts": TABLE + 1_234_500}, r"1,234,5\d\d.* 2,469,0\d\d\."),
        ({"counts": TABLE // 3, "sampled": True}, r"its counts add up to .* 40 of 40 bags"),
        ({"counts": YES, "sampled": True}, "Give sizes= of the bags"),
        *(({"counts": (TABLE + 9) * by, "noise": 2.8}, "a larger noise=") for by in (100, -1)),
        ({"counts": (TABLE + 9) * np.resize([[0, 0], [9, 9]], (40, 2)), "noise": 2.8}, "a larger noise="),
        ({"counts": TABLE, "as_shares": True, "sampled": True}, "sampled=True and as_shares=True"),
        ({"counts": TABLE, "noise": 1.0, "sampled": True}, "noise= and sampled=True cannot be combined"),
        ({"counts": TABLE, "noise": 1.0, "as_shares": True}, "as_shares=True"),
        ({"counts": RANGES, "noise": 1.0}, "noise="),
        ({"counts": RANGES, "as_shares": True}, "as_shares=True"),
        ({"counts": RANGES.mask(SMALL, "about 5")}, "numbers"),
        ({"counts": RANGES.mask(SMALL, "100-200")}, "100 to 200.*impossible='suppress'"),
        ({"counts": pd.Series("100-200", YES.index)}, r"100 to 200 .* Correct them\.$"),
        ({"counts": counted(BAGS, VOTES + (np.arange(600) % 5 == 0)).astype(object).replace(3, "1-4")}, "two classes"),
        ({"counts": TABLE, "noise": -1.0}, "noise must be a standard deviation"),
        ({"counts": SHARES}, "Give shares as proportions="),
        ({"counts": (100 * SHARES).round(1)}, "as_shares=True"),
        ({"proportions": (100 * SHARES).round(1)}, "Divide percentages by 100"),
        ({"proportions": SHARES, "as_shares": True}, "as_shares=True"),
        ({"counts": TABLE.assign(other=3)}, "Without 'other'"),
        ({"counts": TABLE + np.outer(YES, [1, -1]) + [2, -2]}, "must not be negative"),
        ({"X": FRAME.to_dict("records"), "counts": TABLE}, r"pandas\.DataFrame\(X\)"),
        ({"X": FRAME[9:], "bags": pd.Series(BAGS), "counts": TABLE}, r"bags\.loc\[X\.index\]"),
        *(({"counts": (YES + 0.25) * by}, "whole numbers.*proportions=") for by in (1 / 25, 100 / 23, 1 / 1000)),
        ({"bags": 1.0 * LARGE, "counts": OF_LARGE}, "exact identifiers"),
        ({"bags": LARGE.astype(float).to_frame().assign(b=1), "counts": OF_LARGE}, "exact identifiers"),
        ({"counts": LONG.rename({"yes": " NO"}, level=1)}, "'no'"),
        ({"X": FRAME.assign(embedding=[[0.1, 0.2], [0.3]] * 300), "counts": TABLE}, "'embedding' is of type list"),
        *((VOTERS | {how: True}, f"'people'.*{how}") for how in ("sampled", "as_shares")),
        ({"rest_as": "no", "counts": TABLE}, "rest_as"),
        ({"rest_as": " ", "counts": TABLE[["yes"]]}, "rest_as"),
        ({"rest_as": "no", "counts": YES.to_dict()}, "rest_as"),
        ({"rest_as": "no", "counts": RANGES}, "rest_as"),
    ],
)
def test_advice_fits_fault_of_counts(given: dict[str, Any], told: str) -> None:
    with refusal(told):
        fitted(**given)


def test_fewer_counts_than_rows_have_two_remedies() -> None:
    voted = TABLE // 2 + 1
    with refusal("^(?!.*sampled=True).*more rows than counted people.*as_shares=True"):
        fitted(counts=voted)
    model, share = fitted(counts=voted, as_shares=True), voted.div(voted.sum(axis=1), axis=0)
    assert np.allclose(model.bag_counts_, fitted(proportions=share).bag_counts_)
    assert list(fitted(counts=voted.assign(none=(TABLE - voted).sum(axis=1))).classes_) == ["no", "none", "yes"]
    percents = fitted(counts=100 * share, as_shares=True)
    assert np.allclose(percents.predict_proba(FRAME), model.predict_proba(FRAME))
    voted.loc["d03"] = 0
    assert np.isnan(fitted(counts=voted, as_shares=True).bag_counts_[3]).all()


def test_counts_in_thousands_and_of_fractional_weights_have_a_remedy() -> None:
    for rows in (FRAME, FRAME.assign(rare=0)):  # a column of zeros does not add up to these counts
        with refusal("^(?!.*adds up).*other units, such as thousands"):
            fitted(X=rows, counts=TABLE / 1000)
    assert np.allclose(fitted(counts=TABLE / 1000, as_shares=True).bag_counts_, TABLE)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(FRAME)).round(2)
    table = pd.DataFrame({"no": weight * (VOTES == 0), "yes": weight * (VOTES == 1)}).groupby(BAGS).sum().round(1)
    rows = FRAME.assign(weight=weight)
    for sampled in (False, True):
        with refusal(r"'weight' .*sample_weight="):
            fitted(X=rows, counts=table, sampled=sampled)
    with warned("rounded weights"):
        sizes = fitted(X=rows, counts=table, sample_weight=weight).bag_sizes_
    assert np.allclose(sizes, np.bincount(NUMBER, weight))
    assert np.allclose(fitted(counts=table, as_shares=True).bag_sizes_, SIZES)


def test_rounded_shares_may_miss_1() -> None:
    rng = np.random.default_rng(0)
    shares = pd.DataFrame(rng.dirichlet(np.ones(8), 40), TABLE.index, [*"abcdefgh"])
    for digits in (1, 3):
        rounded = shares.round(digits)
        assert np.allclose(fitted(proportions=rounded).bag_counts_.sum(axis=1), SIZES)
        rounded.iloc[3, 0] += 8 * 0.5 / 10**digits + 0.5
        with refusal(r"add up to 1\.\d+, but proportions must add up to 1\. 1 of 40 bags"):
            fitted(proportions=rounded)
    share = pd.DataFrame({"no": 0.48, "yes": 0.5}, index=TABLE.index)  # these miss it by exactly the tolerance
    share.iloc[0] = [0.481234, 0.501234]  # not rounded to a few digits
    assert np.allclose(fitted(proportions=share).bag_counts_.sum(axis=1), SIZES)
    with refusal("Add a class for the rest"):
        fitted(proportions=share - 0.02)


def test_missing_count_is_named_with_remainder() -> None:
    eight: dict[str, Any] = {"X": pd.DataFrame({"age": range(40)}), "bags": np.repeat([f"b{n}" for n in range(8)], 5)}
    yes = pd.Series([4.0, 3.0, 1.0, 3.0, 2.0, 3.0, 3.0, 3.0], np.unique(eight["bags"]))
    counts = pd.DataFrame({"no": 5 - yes, "yes": yes.drop("b4")})
    told = r"^(?!.*'no').*'b4' \(count of 'yes'; with 5 rows and the other counts, it would be 2\)"
    with warned("missing counts", match=told):
        assert fitted(**eight, counts=counts).left_out_["suppressed"] == 1
    with warned("missing counts", match="^(?!.*with 5 rows)"):
        fitted(**eight, counts=counts, noise=1)
    counts.loc[["b1", "b2", "b3"]] = np.nan
    with warned("missing counts", match="^(?!.*b4)4 bags .* 'b3' .* 1 more"):
        fitted(**eight, counts=counts)
    ranges = counts["yes"].astype(object).fillna("1-3")
    with silent("missing counts"):
        fitted(**eight, counts=ranges)
    with warned("missing counts", match="'b5'"):
        fitted(**eight, counts=ranges.drop("b5").reindex(ranges.index))


@pytest.mark.parametrize("again", [[], ["d00"], [*TABLE.index], None], ids=["lines", "one again", "two", "proportions"])
def test_lines_of_bags_are_not_people(again: list[str] | None) -> None:
    rows, bags = TABLE.assign(young=np.arange(40), share=SHARES["yes"]), pd.Index([*TABLE.index, *(again or [])])
    given = {"proportions": SHARES[["yes"]]} if again is None else {"counts": TABLE}
    for known in ({}, {"sampled": True}):
        with refusal(r"Rows must be people.*cross_table"):
            fitted(X=rows.loc[bags], bags=bags, **given, **known)
    with warned("one row per bag"):
        assert fitted(X=rows[["young"]], bags=rows.index, **given, sampled=True).bag_sizes_.sum() == 40


@pytest.mark.parametrize(
    ("counts", "advice"),
    [
        (pa.table(TABLE.reset_index(names="d")), "counts.to_pandas().set_index('d')"),
        (TABLE.stack().swaplevel(), "counts.swaplevel()"),
        (TABLE.T, "counts.T"),
        (TABLE.to_dict(), "pandas.DataFrame(counts)"),
    ],
)
def test_advice_for_counts_in_other_forms_works(counts: Any, advice: str) -> None:
    with refusal(re.escape(f"ive {advice}")):
        fitted(counts=counts)
    remedied = eval(advice, {"counts": counts, "pandas": pd})
    assert np.array_equal(fitted(counts=remedied).bag_counts_, fitted(counts=TABLE).bag_counts_)


def test_single_column_keeps_its_class(tmp_path: Path) -> None:
    """Also where that is not the last in ascending order."""
    model = fitted(counts=YES, classes=["on time", "late"])
    renamed = TABLE.set_axis(["on time", "late"], axis=1)
    for each in (model, reloaded(model, tmp_path)):
        for given in (None, YES, TABLE[["yes"]], renamed[["late"]], renamed[["on time"]]):
            assert each.disaggregate(FRAME, BAGS, counts=given)[:, 0].sum() == pytest.approx(YES.sum())


def test_column_named_after_class_counts_it() -> None:
    """In whatever order classes are. A number may be a default name: it is refused unless it is the counted class."""
    sums, numbered = TABLE.sum().tolist(), TABLE.set_axis([0, 1], axis=1)
    for given in (TABLE[["yes"]], YES, TABLE["no"], LONG.xs("no", level=1, drop_level=False)):
        model = fitted(counts=given, classes=["yes", "no"])
        for other in (model, fitted(counts=TABLE.iloc[:, ::-1])):
            assert other.disaggregate(FRAME, BAGS, counts=given).sum(axis=0) == pytest.approx(sums)
    for unnamed in (numbered[1], numbered[[1]], pd.DataFrame(YES.to_numpy(), YES.index)):
        assert fitted(counts=unnamed).disaggregate(FRAME, BAGS, counts=unnamed).sum(axis=0) == pytest.approx(sums)
    with refusal(r"\b0\b.*\b1\b"):
        fitted(counts=numbered[0])


@pytest.mark.parametrize("classes", [2, 3], ids="{} classes".format)
def test_unnamed_columns_keep_order(classes: int, tmp_path: Path) -> None:
    frame, bags, votes = people(200, 10, classes=classes)
    bags = pd.factorize(bags, sort=True)[0]  # numbers
    table = counted(bags, np.array(list("abc"))[votes]).iloc[:, ::-1]  # not ascending
    model = fitted(X=frame, bags=bags, counts=table.to_numpy(), classes=[*table])
    loaded, scores = reloaded(model, tmp_path), model.score_bags(frame, bags, counts=table)
    forms = [table.to_numpy(), dict(enumerate(table.to_numpy().tolist()))]
    for given in (*forms, *([table["a"].to_dict()] if classes == 2 else [])):  # a single column is that of the last
        assert np.array_equal(loaded.disaggregate(frame, bags, counts=given), model.disaggregate(frame, bags))
        assert loaded.score_bags(frame, bags, counts=given) == scores


def test_key_levels_match_by_name() -> None:
    keys = pd.DataFrame({"a": NUMBER % 4, "b": NUMBER // 4})  # so that (0, 1) and (1, 0) are both bags
    table = counted([keys["a"], keys["b"]], NAMES).rename_axis(columns="party")
    share, sizes = table.div(table.sum(axis=1), axis=0), table.sum(axis=1)
    usual, long = fitted(counts=TABLE).predict_proba(FRAME), share.stack().reorder_levels(["party", "b", "a"])
    for bags in (keys, pd.MultiIndex.from_frame(keys)):  # each key may stand for the other
        for given in (share, share.swaplevel(), share["yes"].swaplevel(), long):
            found = fitted(bags=bags, proportions=given, sizes=sizes.swaplevel()).predict_proba(FRAME)
            assert np.allclose(found, usual)
    assert fitted(bags=LARGE, counts=OF_LARGE).bags_.tolist() == [*OF_LARGE]  # more digits than floats have


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param(["1-9", " 1 to 9 ", "1\u20139"], (1, 9), id="both ends"),
        pytest.param(["1,000-1,999"], (1000, 1999), id="thousands"),
        pytest.param(["<10", "fewer than 10", "\u22649", "<= 9"], (0, 9), id="upper end"),
        pytest.param(["5+", ">=5", ">4", "5 or more"], (5, MOST), id="lower end"),
        pytest.param(["9-1", "<0", "12", "*", "", "-5", "2024-01-31", None, 5, np.nan, "a-b"], None, id="no range"),
    ],
)
def test_range_text_is_parsed(texts: list[Any], found: Any) -> None:
    assert [Range.read(text) for text in texts] == [found] * len(texts)


@pytest.mark.parametrize(
    ("counts", "weight"),
    [
        pytest.param(RANGES, 1, id="series"),
        pytest.param(RANGES.to_dict(), 1, id="mapping"),
        pytest.param(RANGES.to_frame("yes"), 1, id="frame"),
        pytest.param({bag: {"no": "0+", "yes": RANGES[bag]} for bag in RANGES.index}, 1, id="both classes"),
        pytest.param(pd.concat([TABLE["no"].mask(SMALL), RANGES], axis=1), 1, id="other class empty"),
        pytest.param((2 * YES).astype(object).mask(SMALL, "<15"), 2, id="weights"),
    ],
)
def test_ranges_train_in_every_form_of_counts_and_with_weights(counts: Any, weight: int) -> None:
    model = fitted(counts=counts, sample_weight=None if weight == 1 else np.full(600, 2.0))
    assert (model.left_out_["suppressed"], model.bag_sizes_.sum()) == (0, 600 * weight)
    exact, small = ((model.bag_counts_[:, 1] / weight)[which] for which in (~SMALL, SMALL))
    assert (exact == YES[~SMALL]).all()
    assert ((small > 0) & (small < 7)).all()
    assert np.corrcoef(small, YES[SMALL])[0, 1] > 0.5  # features tell where in its range a count is
    assert np.allclose(model.bag_counts_.sum(axis=1), model.bag_sizes_)


def test_exact_and_impossible_ranges_are_handled() -> None:
    by_counts_of_no = pd.concat([TABLE["no"], RANGES], axis=1)
    for exact in (by_counts_of_no, YES.astype(object).mask(SMALL, YES.map("{0}-{0}".format))):
        assert (fitted(counts=exact).bag_counts_[:, 1] == YES).all()
    model = fitted(counts=YES.astype(object).mask(SMALL, "100-200"), impossible="suppress")
    assert model.left_out_["impossible"] == SMALL.sum()
    assert np.isnan(model.bag_counts_[SMALL]).all()


def test_initial_count_is_expectation() -> None:
    count = betabinom.rvs(40, 2.0, 10.0, size=3000, random_state=np.random.default_rng(0))
    bags = np.flatnonzero(count < 10)
    counts = np.where(count[:, None] < 10, np.nan, np.column_stack([40 - count, count]))
    guess = CountRanges(bags, np.zeros(len(bags)), np.full(len(bags), 9.0)).filled(counts, np.full(3000, 40.0))[bags, 1]
    inside = betabinom.pmf(np.arange(10), 40, 2.0, 10.0)
    assert guess == pytest.approx(np.full(len(bags), inside @ np.arange(10) / inside.sum()), abs=0.15)
    assert guess.mean() == pytest.approx(count[bags].mean(), abs=0.15)


def test_ranges_train_folds_but_are_no_exact_counts_to_judge_or_bound_by() -> None:
    compared: dict[str, Any] = {"methods": ["bag-mean-linear", "bag-soft-label-linear"], "folds": 2, "repeats": 1}
    found, without = (choose(FRAME, BAGS, counts=each, **compared) for each in (RANGES, YES.mask(SMALL)))
    assert (found.board["failure"] == "").all()
    assert not np.allclose(found.folds["kl"], without.folds["kl"])
    model = LLPClassifier("bag-gp", params={"draws": 0}).fit(FRAME, BAGS, counts=RANGES)
    assert model.score_bags(FRAME, BAGS) != model.score_bags(FRAME, BAGS, counts=YES.mask(SMALL))
    assert (model.estimate(FRAME, BAGS, by=BAGS)["count_min"] == 0).all()


@pytest.mark.parametrize("argument", ["bags", "sample_weight", "by"])
def test_overlapping_reordered_indexes_are_refused(argument: str) -> None:
    column = (pd.Series(np.ones(600)) if argument == "sample_weight" else pd.Series(BAGS)).set_axis(range(5, 605))
    other_kind = pd.Series(BAGS, [f"row {row}" for row in range(600)])  # so that the rows are in order
    model = fitted(bags=other_kind, counts=TABLE)
    assert np.array_equal(model.predict_proba(FRAME), fitted(counts=TABLE).predict_proba(FRAME))
    call: Any = model.estimate if argument == "by" else partial(fitted, counts=TABLE)
    with refusal(f"^{argument} and X have different indexes: entry 0 is 5 in {argument} and 0 in X"):
        call(**{"X": FRAME, "bags": BAGS, argument: column})


@pytest.mark.parametrize("argument", ["counts", "proportions", "sizes", "time"])
def test_arrays_for_ambiguously_ordered_bags_are_refused(argument: str) -> None:
    by_name = TABLE.set_axis([f"P{number}" for number in range(1, 41)])  # the rows are in the order of numbers
    counts = {} if argument == "proportions" else {"counts": by_name}
    ambiguous = {argument: TABLE.to_numpy() if argument == "counts" else SHARES["yes"].tolist()}
    call: Any = choose if argument == "time" else fitted
    with refusal(rf"^{argument} without names .*'P1', 'P10', "):
        call(X=FRAME, bags=[f"P{number}" for number in 1 + NUMBER], **counts | ambiguous)
    with refusal(r"^(?!.*drop).*\(40\).*\(0\).*same names in both"):
        fitted(bags=1 + NUMBER, counts=TABLE.reset_index(drop=True))


def test_order_of_bags_is_clear_for_numbers_and_for_texts_that_appear_sorted() -> None:
    for names in (["01.02.2024", "25.01.2024", "26.01.2024"], [("S0", "P0"), ("S0", "P4"), ("S1", "P1")]):
        for appearing in ([1, 0, 2], [1, 2, 0], [0, 2, 1]):
            with refusal("counts"):
                _require_clear_order("counts", names, np.array(appearing))
            _require_clear_order("counts", [1, 2, 10], np.array(appearing))
        _require_clear_order("counts", names, np.array([0, 0, 1, 2, -1]))


@pytest.mark.parametrize("names", [[0.0, 1.0], ["no", "yes"], ["Nein", "Ja"]], ids=["numbers", "classes", "texts"])
@pytest.mark.parametrize(("errors", "gaps", "refused"), [(0.0, 0.0, 0.0), (0.03, 0, 0), (0, 0.15, 0), (0, 0, 0.05)])
def test_label_among_features_is_warned_of(names: list[Any], errors: float, gaps: float, refused: float) -> None:
    rng, row = np.random.default_rng(0), np.arange(600)
    answer = pd.Series(np.array(names)[np.where(rng.random(600) < errors, 1 - VOTES, VOTES)])
    answer = answer.mask(rng.random(600) < gaps)
    answer = answer.mask(rng.random(600) < refused, 9.0 if names[0] == 0 else "refused")
    with warned("label", match="column 'vote'"):
        fitted(X=FRAME.assign(vote=answer), counts=TABLE)
    other_shares, no_classes = np.where(row % 3, "no", "yes"), np.where((VOTES + (row % 9 == 0)) % 2, "high", "low")
    frame = FRAME.assign(vote=rng.permutation(answer), coin=row % 2, answer=other_shares, nearly=no_classes)
    with silent("label"):
        fitted(X=frame, counts=TABLE)


@pytest.mark.parametrize("given", [{}, {"sampled": True}, {"as_shares": True}], ids=["all", "sampled", "as_shares"])
def test_total_column_is_not_a_class(given: dict[str, Any]) -> None:
    nearly = SIZES + (np.arange(40) == 3)
    large = TABLE.assign(no=TABLE["no"] + 200, tests=nearly + 200 + np.arange(40) % 3 - 1)
    for classes in (TABLE[["yes"]], TABLE):
        with refusal("^class 'tests' is the .*nearly every bag"):
            fitted(counts=classes.assign(tests=nearly), **given)
    for counts, told in (TABLE[["yes"]].assign(tests=SIZES), "number of rows of every bag"), (large, "sum"):
        with refusal(f"^class 'tests' is the {told}"):
            fitted(counts=counts, **given)
    with refusal("^class 'tests' is the sum of the other classes"):
        fitted(X=FRAME[::2], bags=BAGS[::2], counts=TABLE.assign(tests=SIZES), **given or {"sampled": True})
    assert (fitted(counts=TABLE.assign(no=10, yes=10), as_shares=True).bag_counts_ > 0).all()


def test_probable_total_is_warned_of() -> None:
    registered = 20 * SIZES + np.arange(40) % 20
    votes = pd.DataFrame({"votes_yes": 20 * YES, "registered": registered})
    for table in (votes, (20 * TABLE).assign(people=registered)):
        with warned("total", match=f"class '{table.columns[-1]}'"):
            fitted(counts=table, sampled=True)
    with silent("total"):
        fitted(counts=20 * TABLE[["yes"]], sampled=True, sizes=registered)
        fitted(counts=pd.DataFrame({"none": 20 * SIZES, "some": YES, "other": 1}), sampled=True)


def test_near_names_are_found() -> None:
    pairs: dict[Any, Any] = {"01": "1", "Mt Zion 3": "Mt. Zion 3", "Saint Louis": "St. Louis", "Zürich": "ZURICH"}
    for name, other in (pairs | {("7", "a"): (7, "A"), pd.Timestamp("2024-01-31"): "2024-01-31"}).items():
        assert near_names(["new", name], ["old", other]) == f"{name!r} is nearly {other!r}"
    assert near_names(["new", "D1", "2016-11"], ["old", "D2", "2016-01"]) == ""


@pytest.mark.parametrize(
    ("unit", "noise", "at_random"), [(5, "1.44", False), (10, "2.89", False), (3, "1.15", True), (5, "2", True)]
)
def test_rounded_counts_name_their_noise(unit: int, noise: str, at_random: bool) -> None:
    up = np.random.default_rng(0).random(TABLE.shape) if at_random else 0.5
    rounded = np.floor(TABLE / unit + up) * unit
    with refusal(f"rounded to {unit}.*{noise}"):
        fitted(counts=rounded)
    with silent("large noise"):
        assert fitted(counts=rounded, noise=float(noise)).bag_counts_.shape == TABLE.shape
    with warned("large noise", match="deviation of 500"):
        fitted(counts=TABLE, noise=500.0)


def test_rest_of_the_rows_becomes_a_class() -> None:
    dropped = {"counts": TABLE.rename(columns={"no": "other"}), "classes": ["yes"], "unmatched": "drop"}
    for given in ({"counts": TABLE[["yes"]]}, dropped):
        rest = fitted(**given, rest_as="no")
        assert [*rest.classes_] == ["no", "yes"]
        assert np.array_equal(rest.bag_counts_, TABLE)
