"""Known labels of some rows: bags of one row, and the rest of the bags they are from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people

from llpbench import choose
from llpbench.core.errors import LLPBenchError
from llpbench.owndata.classifier import LLPClassifier

FRAME, BAGS, VOTES = people(400, 16)
NAMES = np.array(["no", "yes"])[VOTES]
TABLE = counted(BAGS, NAMES)
SOME = np.arange(400) % 10 == 0


def known(some: Any) -> pd.Series:
    labels = pd.Series(NAMES, dtype=object)
    labels[~some] = None
    return labels


def fitted(method: str = "bag-mean-linear", **given: Any) -> LLPClassifier:
    return LLPClassifier(method).fit(**{"X": FRAME, "bags": BAGS, "counts": TABLE} | given)


def as_bags(some: Any) -> tuple[Any, pd.DataFrame]:
    """The same in bags: those of one row come last."""
    of_row = np.where(some, 1000 + np.arange(len(FRAME)), np.asarray(BAGS))
    return of_row, counted(of_row, NAMES)


@pytest.mark.parametrize("some", [SOME, SOME | (np.asarray(BAGS) == 3)])
def test_labelled_rows_are_bags_of_one(some: Any) -> None:
    model = fitted(labels=known(some))
    of_row, table = as_bags(some)
    expected = LLPClassifier("bag-mean-linear").fit(FRAME, of_row, counts=table)
    assert np.allclose(model.predict_proba(FRAME), expected.predict_proba(FRAME), atol=1e-12)
    assert not np.allclose(model.predict_proba(FRAME), fitted().predict_proba(FRAME), atol=1e-3)
    assert np.array_equal(model.bag_counts_, fitted().bag_counts_)
    assert np.allclose(model.disaggregate(FRAME, BAGS).sum(axis=0), TABLE.sum())


def test_labels_of_suppressed_bags_are_used_and_no_labels_change_nothing() -> None:
    counts = TABLE.astype(float)
    counts.iloc[3] = np.nan
    inside = np.asarray(BAGS) == TABLE.index[3]
    with_labels, without = fitted(counts=counts, labels=known(inside)), fitted(counts=counts)
    assert not np.allclose(with_labels.predict_proba(FRAME), without.predict_proba(FRAME), atol=1e-4)
    nothing = fitted(labels=known(np.zeros(400, dtype=bool)))
    assert np.array_equal(nothing.predict_proba(FRAME), fitted().predict_proba(FRAME))


def test_the_rest_of_a_bag_keeps_its_shares_where_counts_are_of_others_or_rounded() -> None:
    labels = known(np.asarray(BAGS) == TABLE.index[0])
    labels[labels == "no"] = None  # more positives than the share of the bag says
    fitted(counts=TABLE * 3, sampled=True, labels=labels)
    counts = TABLE.copy()
    counts.iloc[0] = [counts.iloc[0].sum(), 0]
    with pytest.raises(LLPBenchError, match=f"bag {TABLE.index[0]!r} .*'yes' in labels="):
        fitted(counts=counts, labels=labels)
    fitted(counts=counts * 3, sampled=True, labels=labels)
    fitted(proportions=TABLE.div(TABLE.sum(axis=1), axis=0).round(2), counts=None, labels=known(np.arange(400) > 0))


def test_labels_and_weights_go_together() -> None:
    weight = 1 + np.arange(400) % 3
    often = np.repeat(np.arange(400), weight)
    table = counted(np.asarray(BAGS)[often], NAMES[often])
    weighted = fitted(counts=table, sample_weight=weight, labels=known(SOME))
    of_row, _ = as_bags(SOME)
    expected = LLPClassifier("bag-mean-linear").fit(
        FRAME.iloc[often], of_row[often], counts=counted(of_row[often], NAMES[often])
    )
    assert np.allclose(weighted.predict_proba(FRAME), expected.predict_proba(FRAME), atol=1e-12)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"labels": known(SOME).replace("no", "maybe")}, r"must be of the classes \['no', 'yes'\], got 'maybe'"),
        ({"labels": ["no", "yes"]}, r"labels must .* 400 rows of X, got 2"),
        ({"labels": known(SOME)[::-1]}, "different orders"),
        ({"labels": known(SOME), "noise": 2.0}, r"labels=.* noise="),
    ],
)
def test_impossible_labels_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told):
        fitted(**given)
    with pytest.raises(LLPBenchError, match="does not use labels="):
        choose(FRAME, BAGS, counts=TABLE, labels=known(SOME), progress=False)
