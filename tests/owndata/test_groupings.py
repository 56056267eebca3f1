"""More than counts of one grouping: several groupings of the same rows, and known labels of some rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench.core.errors import LLPBenchError
from llpbench.owndata.choosing import choose
from llpbench.owndata.classifier import LLPClassifier

FRAME, BAGS, VOTES = people(600, 20)
DISTRICT = pd.Series(BAGS, name="district")
GROUP = pd.Series(np.where(FRAME["owns"], "owner", "tenant"), name="group") + (np.arange(600) % 3).astype(str)
TABLES = [counted(DISTRICT, VOTES), counted(GROUP, VOTES)]


def fit(bags: Any, method: str = "bag-mean-linear", frame: Any = FRAME, **given: Any) -> LLPClassifier:
    return LLPClassifier(method).fit(frame, bags, **given)


@pytest.mark.parametrize(
    "form",
    [
        lambda table: table[[1, 0]],
        lambda table: table[1].to_dict(),
        lambda table: table.to_numpy(),
    ],
)
def test_several_groupings_equal_copies_of_rows(form: Any) -> None:
    twice = pd.concat([FRAME, FRAME], ignore_index=True)
    plain = fit(np.concatenate([DISTRICT, GROUP]), frame=twice, counts=pd.concat(TABLES))
    found = fit([DISTRICT, GROUP], counts=[form(table) for table in TABLES])
    assert np.allclose(found.predict_proba(FRAME), plain.predict_proba(FRAME))
    assert found.groupings_ == 2
    assert {*found.bags_} == {*DISTRICT, *GROUP}


def test_weights_apply_to_each_grouping() -> None:
    weights = pd.Series(np.arange(600) % 2 + 1, name="people")
    tables = [counted(each.repeat(weights), np.repeat(VOTES, weights)) for each in (DISTRICT, GROUP)]
    frame = FRAME.assign(people=weights)
    found = fit([DISTRICT, GROUP], frame=frame, counts=tables, sample_weight=weights)
    assert found.bag_sizes_.sum() == 2 * weights.sum()
    assert found.key_features_ == ["people"]


def test_bag_columns_are_no_features_unless_kept() -> None:
    frame = FRAME.assign(district=DISTRICT, group=GROUP)
    found = fit([DISTRICT, GROUP], frame=frame, counts=TABLES)
    assert found.key_features_ == ["district", "group"]
    assert np.allclose(found.predict_proba(frame), fit([DISTRICT, GROUP], counts=TABLES).predict_proba(FRAME))
    assert fit([DISTRICT, GROUP], frame=frame, counts=TABLES, keep_key=True).n_features_in_ == FRAME.shape[1] + 2


@pytest.mark.parametrize(
    ("bags", "given", "told"),
    [
        ([DISTRICT, GROUP], {"method": "dllp"}, "direct method"),
        ([DISTRICT, GROUP], {"counts": TABLES[0]}, "list"),
        ([DISTRICT], {"counts": TABLES[:1]}, "at least 2"),
        ([DISTRICT, DISTRICT], {"counts": [TABLES[0]] * 2}, "same name"),
        ([DISTRICT, GROUP], {"counts": [TABLES[0], TABLES[1].set_axis(["a", "b"], axis=1)]}, "same classes"),
        ([DISTRICT, GROUP], {"counts": [TABLES[0], TABLES[1][1]]}, "same classes"),
        ([DISTRICT, GROUP], {"noise": 1.0}, "noise="),
        ([DISTRICT, GROUP[:500]], {}, "500"),
    ],
)
def test_conflicting_options_are_refused(bags: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        fit(bags, **{"counts": TABLES} | given)
    assert "\n" not in str(error.value)


def test_choose_accepts_one_grouping() -> None:
    with pytest.raises(LLPBenchError, match="grouping"):
        choose(FRAME, [DISTRICT, GROUP], counts=TABLES)


NAMES = np.array(["no", "yes"])[VOTES]
NAMED = counted(BAGS, NAMES)
SOME = np.arange(600) % 10 == 0


def known(some: Any) -> pd.Series:
    labels = pd.Series(NAMES, dtype=object)
    labels[~some] = None
    return labels


def fitted(method: str = "bag-mean-linear", **given: Any) -> LLPClassifier:
    return LLPClassifier(method).fit(**{"X": FRAME, "bags": BAGS, "counts": NAMED} | given)


def as_bags(some: Any) -> tuple[Any, pd.DataFrame]:
    """The same in bags: those of one row come last."""
    of_row = np.where(some, 1000 + np.arange(len(FRAME)), BAGS)
    return of_row, counted(of_row, NAMES)


@pytest.mark.parametrize("some", [SOME, SOME | (BAGS == "d03")])
def test_labelled_rows_equal_single_row_bags(some: Any) -> None:
    model = fitted(labels=known(some))
    of_row, table = as_bags(some)
    expected = LLPClassifier("bag-mean-linear").fit(FRAME, of_row, counts=table)
    assert np.allclose(model.predict_proba(FRAME), expected.predict_proba(FRAME), atol=1e-9)
    assert not np.allclose(model.predict_proba(FRAME), fitted().predict_proba(FRAME), atol=1e-3)
    assert np.array_equal(model.bag_counts_, fitted().bag_counts_)
    assert np.allclose(model.disaggregate(FRAME, BAGS).sum(axis=0), NAMED.sum())


def test_labels_of_suppressed_bags_are_used() -> None:
    counts = NAMED.astype(float)
    counts.iloc[3] = np.nan
    inside = NAMED.index[3] == BAGS
    with_labels, without = fitted(counts=counts, labels=known(inside)), fitted(counts=counts)
    assert not np.allclose(with_labels.predict_proba(FRAME), without.predict_proba(FRAME), atol=1e-4)
    nothing = fitted(labels=known(np.zeros(600, dtype=bool)))
    assert np.array_equal(nothing.predict_proba(FRAME), fitted().predict_proba(FRAME))


def test_unlabelled_rest_keeps_shares() -> None:
    labels = known(NAMED.index[0] == BAGS)
    labels[labels == "no"] = None  # more positives than the share of the bag says
    fitted(counts=NAMED * 3, sampled=True, labels=labels)
    counts = NAMED.copy()
    counts.iloc[0] = [counts.iloc[0].sum(), 0]
    with pytest.raises(LLPBenchError, match=f"bag {NAMED.index[0]!r} .*'yes' in labels="):
        fitted(counts=counts, labels=labels)
    fitted(counts=counts * 3, sampled=True, labels=labels)
    fitted(proportions=NAMED.div(NAMED.sum(axis=1), axis=0).round(2), counts=None, labels=known(np.arange(600) > 0))


def test_labels_and_weights_combine() -> None:
    weight = 1 + np.arange(600) % 3
    often = np.repeat(np.arange(600), weight)
    table = counted(BAGS[often], NAMES[often])
    weighted = fitted(counts=table, sample_weight=weight, labels=known(SOME))
    of_row, _ = as_bags(SOME)
    expected = LLPClassifier("bag-mean-linear").fit(
        FRAME.iloc[often], of_row[often], counts=counted(of_row[often], NAMES[often])
    )
    assert np.allclose(weighted.predict_proba(FRAME), expected.predict_proba(FRAME), atol=1e-9)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"labels": known(SOME).replace("no", "maybe")}, r"must be 'no' or 'yes', got 'maybe'"),
        ({"labels": ["no", "yes"]}, r"labels must .* 600 rows, got 2"),
        ({"labels": known(SOME)[::-1]}, "different orders"),
        ({"labels": known(SOME), "noise": 2.0}, r"labels=.* noise="),
    ],
)
def test_impossible_labels_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told):
        fitted(**given)
    with pytest.raises(LLPBenchError, match="does not use labels="):
        choose(FRAME, BAGS, counts=NAMED, labels=known(SOME), progress=False)
