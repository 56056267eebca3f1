"""Several groupings of the same rows: copies of rows, one for each grouping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from districts import counted, people
from sklearn.metrics import roc_auc_score

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
        lambda table: table,
        lambda table: table[[1, 0]],
        lambda table: table[1],
        lambda table: table[1].to_dict(),
        lambda table: table.stack(),
        lambda table: table.to_numpy(),
    ],
)
def test_a_fit_to_groupings_is_a_fit_to_copies_of_the_rows(form: Any) -> None:
    twice = pd.concat([FRAME, FRAME], ignore_index=True)
    plain = fit(np.concatenate([DISTRICT, GROUP]), frame=twice, counts=pd.concat(TABLES))
    found = fit([DISTRICT, GROUP], counts=[form(table) for table in TABLES])
    assert np.allclose(found.predict_proba(FRAME), plain.predict_proba(FRAME))
    assert found.groupings_ == 2
    assert {*found.bags_} == {*DISTRICT, *GROUP}


def test_weights_are_those_of_each_copy() -> None:
    weights = pd.Series(np.arange(600) % 2 + 1, name="people")
    tables = [counted(each.repeat(weights), np.repeat(VOTES, weights)) for each in (DISTRICT, GROUP)]
    frame = FRAME.assign(people=weights)
    found = fit([DISTRICT, GROUP], frame=frame, counts=tables, sample_weight=weights)
    assert found.bag_sizes_.sum() == 2 * weights.sum()
    assert found.key_features_ == ["people"]


def test_columns_that_name_bags_are_no_features_unless_kept() -> None:
    frame = FRAME.assign(district=DISTRICT, group=GROUP)
    found = fit([DISTRICT, GROUP], frame=frame, counts=TABLES)
    assert found.key_features_ == ["district", "group"]
    assert np.allclose(found.predict_proba(frame), fit([DISTRICT, GROUP], counts=TABLES).predict_proba(FRAME))
    assert fit([DISTRICT, GROUP], frame=frame, counts=TABLES, keep_key=True).n_features_in_ == FRAME.shape[1] + 2


def test_rows_of_bags_of_either_grouping_add_up() -> None:
    model = fit([DISTRICT, GROUP], counts=TABLES)
    for bags, table in zip((DISTRICT, GROUP), TABLES, strict=True):
        sums = pd.Series(model.disaggregate(FRAME, bags)[:, 1]).groupby(bags).sum()
        assert np.allclose(sums, table[1])


@pytest.mark.parametrize("method", ["bag-gp", "bag-mean-linear"])
def test_two_groupings_tell_more_than_each(method: str) -> None:
    """Each grouping shows one of two features: its bags differ by that one alone."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1200, 2)), columns=["a", "b"])
    label = (frame["a"] + frame["b"] + rng.logistic(0, 0.3, 1200) > 0).astype(int)
    bags = [frame[name].rank().floordiv(60).astype(int).map(f"{name}{{}}".format) for name in ("a", "b")]
    tables = [label.groupby(each).sum() for each in bags]
    params = {"draws": 0, "most_pairs": 0} if method == "bag-gp" else None
    models = [LLPClassifier(method, params=params) for _ in range(3)]
    both = models[0].fit(frame, bags, counts=tables)
    each = [model.fit(frame, own, counts=table) for model, own, table in zip(models[1:], bags, tables, strict=True)]
    auc = [roc_auc_score(label, model.predict_proba(frame)[:, 1]) for model in (both, *each)]
    assert auc[0] > max(auc[1:]) + 0.02


@pytest.mark.parametrize(
    ("bags", "given", "told"),
    [
        ([DISTRICT, GROUP], {"method": "dllp"}, "direct method"),
        ([DISTRICT, GROUP], {"counts": TABLES[0]}, "list"),
        ([DISTRICT, GROUP], {"counts": TABLES[:1]}, "list"),
        ([DISTRICT], {"counts": TABLES[:1]}, "at least 2"),
        ([DISTRICT, DISTRICT], {"counts": [TABLES[0]] * 2}, "same name"),
        ([DISTRICT, GROUP], {"counts": [TABLES[0], TABLES[1].set_axis(["a", "b"], axis=1)]}, "same classes"),
        ([DISTRICT, GROUP], {"counts": [TABLES[0], TABLES[1][1]]}, "same classes"),
        ([DISTRICT, GROUP], {"noise": 1.0}, "noise="),
        ([DISTRICT, GROUP], {"labels": [None] * 600}, "labels="),
        ([DISTRICT, GROUP[:500]], {}, "500"),
    ],
)
def test_what_does_not_go_together_is_one_clear_line(bags: Any, given: dict[str, Any], told: str) -> None:
    with pytest.raises(LLPBenchError, match=told) as error:
        fit(bags, **{"counts": TABLES} | given)
    assert "\n" not in str(error.value)


def test_choose_has_one_grouping() -> None:
    with pytest.raises(LLPBenchError, match="grouping"):
        choose(FRAME, [DISTRICT, GROUP], counts=TABLES)
