"""What owners of bag data have, in whatever form: long tables, samples of bags, suppressed and impossible counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.core.errors import LLPBenchError

FRAME, BAGS, VOTES = people(200, 10)
TABLE = counted(BAGS, np.array(["no", "yes"])[VOTES])
LONG = TABLE.rename_axis(index="district", columns="party").stack()
SIZES = TABLE.sum(axis=1)


def fitted(**given: Any) -> LLPClassifier:
    return LLPClassifier("bag-mean-linear").fit(given.pop("X", FRAME), given.pop("bags", BAGS), **given)


def test_absent_class_in_mapping_has_no_rows() -> None:
    frame, bags, votes = people(200, 60)
    table = counted(bags, np.array(["no", "yes"])[votes])
    listed = {bag: {name: n for name, n in row.items() if n} for bag, row in table.iterrows()}
    assert any(len(row) == 1 for row in listed.values())
    found = fitted(X=frame, bags=bags, counts=listed).bag_counts_
    assert np.array_equal(found, fitted(X=frame, bags=bags, counts=table).bag_counts_)
    withheld = fitted(X=frame, bags=bags, counts={**listed, table.index[0]: {}}).bag_counts_
    assert np.isnan(withheld).all(axis=1).tolist() == [True] + [False] * (len(table) - 1)


def test_noisy_counts_are_accepted_later(tmp_path: Path) -> None:
    noisy = TABLE + np.random.default_rng(0).normal(0, 2, TABLE.shape)
    plain, told = fitted(counts=TABLE), fitted(counts=noisy, noise=2.0)
    told.save(tmp_path / "model")
    for model in (told, LLPClassifier.load(tmp_path / "model")):
        assert np.isfinite([*model.score_bags(FRAME, BAGS, counts=noisy).values()]).all()
        possible = model.disaggregate(FRAME, BAGS, counts=noisy)
        assert np.array_equal(possible, model.disaggregate(FRAME, BAGS)), "those of fit are these"
        assert (model.assign(FRAME, BAGS, counts=noisy) == model.assign(FRAME, BAGS)).all()
    with pytest.raises(LLPBenchError, match=r"^bag .* rows, but its counts"):
        plain.disaggregate(FRAME, BAGS, counts=noisy)


def test_object_numbers_are_numbers() -> None:
    wide = fitted(counts=TABLE)
    found = fitted(X=FRAME.astype({"age": object}), counts=TABLE)
    assert np.array_equal(found.predict_proba(FRAME), wide.predict_proba(FRAME))
    row = FRAME.iloc[[7]]
    assert np.array_equal(wide.predict_proba(row.T.T), wide.predict_proba(row)), "a transposed row is one of objects"


def test_sampled_rows_use_proportions_of_whole_bag() -> None:
    some = np.arange(len(FRAME)) % 3 > 0
    sample: dict[str, Any] = {"X": FRAME[some], "bags": BAGS[some], "sampled": True}
    share = TABLE.div(SIZES, axis=0)
    plain = fitted(X=FRAME[some], bags=BAGS[some], proportions=share)
    one = {"counts": TABLE["yes"], "sizes": SIZES, "classes": ["no", "yes"]}
    for given in ({"counts": TABLE}, {"proportions": share, "sizes": SIZES}, one):
        model = fitted(**sample, **given)
        assert np.allclose(model.bag_counts_, plain.bag_counts_)
    with pytest.raises(LLPBenchError, match=r"its size is .* 10 of 10 bags.*sampled="):
        fitted(**sample | {"sampled": False}, proportions=share, sizes=SIZES)
    with pytest.raises(LLPBenchError, match=r"its counts add up to .* 10 of 10 bags"):
        fitted(**sample, counts=TABLE // 3)
    with pytest.raises(LLPBenchError, match="Give sizes= of the bags"):
        fitted(**sample, counts=TABLE["yes"])


def test_impossible_counts_are_suppressed_on_request() -> None:
    table = TABLE.astype(float)
    table.loc["d03", "yes"] += 1
    table.loc["d05"] = np.nan
    with pytest.raises(LLPBenchError, match=r"^bag 'd03' .* 1 of 10 bags"):
        fitted(counts=table)
    model = fitted(counts=table, impossible="suppress")
    assert model.left_out_ == {"rows": 0, "bags": 0, "suppressed": 1, "impossible": 1}
    table.loc["d03"] = np.nan
    assert np.array_equal(model.predict_proba(FRAME), fitted(counts=table).predict_proba(FRAME))


@pytest.mark.parametrize(("impossible", "offered"), [(8, True), (9, False)])
def test_suppression_is_offered_if_two_bags_remain(impossible: int, offered: bool) -> None:
    table = TABLE.astype(float)
    table.iloc[:impossible] += 17
    with pytest.raises(LLPBenchError, match=f"{impossible} of 10 bags") as error:
        fitted(counts=table)
    assert ("impossible='suppress'" in str(error.value)) == offered
    if offered:
        assert fitted(counts=table, impossible="suppress").left_out_["impossible"] == impossible
    else:
        with pytest.raises(LLPBenchError, match="at least 2 bags must have known counts"):
            fitted(counts=table, impossible="suppress")


def test_dropped_rows_are_counted() -> None:
    more = pd.concat([LONG, pd.Series({("d03", "void"): 4, ("d99", "yes"): 7})])
    lost = BAGS[0] == BAGS
    bags = np.where(lost, np.where(np.arange(200) == 0, "nowhere", "d77"), BAGS)
    model = fitted(bags=bags, counts=more, classes=["no", "yes"], unmatched="drop")
    assert model.left_out_ == {"rows": int(lost.sum()), "bags": 2, "suppressed": 0, "impossible": 0}
    assert list(model.classes_) == ["no", "yes"]
    alone = fitted(X=FRAME[~lost], bags=BAGS[~lost], counts=TABLE.drop(BAGS[0]))
    assert np.array_equal(model.predict_proba(FRAME), alone.predict_proba(FRAME))


def test_suppressed_bags_are_predicted_but_not_trained_on() -> None:
    table = TABLE.astype(float)
    table.loc["d03"] = np.nan
    model, rows = fitted(counts=table), BAGS == "d03"
    alone = fitted(X=FRAME[~rows], bags=BAGS[~rows], counts=table.dropna())
    assert np.allclose(model.predict_proba(FRAME), alone.predict_proba(FRAME), atol=0.02)
    assert np.array_equal(model.disaggregate(FRAME, BAGS)[rows], model.predict_proba(FRAME)[rows])
    assert np.array_equal(model.assign(FRAME, BAGS)[rows], model.predict(FRAME)[rows])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"counts": pd.concat([LONG, LONG[:1]])}, "two entries for class 'no' of bag 'd00'"),
        ({"counts": LONG.rename({"no": None}, level=1)}, r"10 of 20 counts have no bag or no class"),
        (
            {"counts": LONG, "classes": ["no"]},
            r"have the classes 'no', 'yes', but the given classes are 'no'.*unmatched='drop'",
        ),
        ({"counts": TABLE.add_prefix("district ", axis=0), "unmatched": "drop"}, r"no bag of X .* has counts"),
        (
            {"counts": TABLE, "sizes": SIZES.drop("d01")},
            r"sizes must be known for all bags, got none for 1 bag \('d01'\)",
        ),
        ({"counts": TABLE, "sizes": SIZES + 2}, r"^bag 'd00' has \d+ rows, but its counts"),
        ({"counts": TABLE, "as_shares": True, "sampled": True}, "sampled=True and as_shares=True"),
        ({"counts": TABLE, "noise": 1.0, "sampled": True}, "noise= and sampled=True cannot be combined"),
        ({"counts": TABLE, "noise": -1.0}, "noise must be a standard deviation"),
    ],
)
def test_inconsistent_input_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        fitted(**given)
    assert "\n" not in str(error.value)


def test_single_column_keeps_its_class(tmp_path: Path) -> None:
    """Also where that is not the last in ascending order."""
    model = fitted(counts=TABLE["yes"], classes=["on time", "late"])
    model.save(tmp_path)
    renamed = TABLE.set_axis(["on time", "late"], axis=1)
    for each in (model, LLPClassifier.load(tmp_path)):
        for given in (None, TABLE["yes"], TABLE[["yes"]], renamed[["late"]], renamed[["on time"]]):
            proba = each.disaggregate(FRAME, BAGS, counts=given)
            assert proba[:, 0].sum() == pytest.approx(TABLE["yes"].sum())


@pytest.mark.parametrize("classes", [2, 3])
def test_unnamed_columns_keep_order(classes: int, tmp_path: Path) -> None:
    frame, bags, votes = people(200, 10, classes=classes)
    bags = pd.factorize(bags, sort=True)[0]  # numbers
    table = counted(bags, np.array(list("abc"))[votes])
    named = list(table.columns)[::-1]  # not ascending
    model = fitted(X=frame, bags=bags, counts=table[named].to_numpy(), classes=named)
    model.save(tmp_path / "model")
    loaded = LLPClassifier.load(tmp_path / "model")
    for given in (table[named].to_numpy(), dict(zip(table.index, table[named].to_numpy().tolist(), strict=True))):
        assert np.array_equal(loaded.disaggregate(frame, bags, counts=given), model.disaggregate(frame, bags))
        assert loaded.score_bags(frame, bags, counts=given) == model.score_bags(frame, bags, counts=table)
    if classes == 2:  # a single column is that of the last
        given = table[named[-1]].to_dict()
        assert np.array_equal(loaded.disaggregate(frame, bags, counts=given), model.disaggregate(frame, bags))


def test_key_levels_match_by_name() -> None:
    number = np.unique(BAGS, return_inverse=True)[1]
    keys = pd.DataFrame({"a": number % 4, "b": number // 4})  # so that (0, 1) and (1, 0) are both bags
    table = counted([keys["a"], keys["b"]], np.array(["no", "yes"])[VOTES]).rename_axis(columns="party")
    share, sizes = table.div(table.sum(axis=1), axis=0), table.sum(axis=1)
    usual = fitted(counts=TABLE).predict_proba(FRAME)
    long = share.stack().reorder_levels(["party", "b", "a"])
    for given in (share, share.swaplevel(), share["yes"].swaplevel(), long):  # of keys that may stand for one another
        found = fitted(bags=keys, proportions=given, sizes=sizes.swaplevel()).predict_proba(FRAME)
        assert np.allclose(found, usual)
