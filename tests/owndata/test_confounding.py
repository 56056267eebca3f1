"""Sensitivity of tables of groups by outcomes to causes that act on precincts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from districts import warned
from known_cells import simulated
from scipy.special import expit

from llpbench import cross_table
from llpbench.core.bags import FloatArray
from llpbench.owndata.confounding import Confounding


def confounded(kind: str) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray, pd.DataFrame]:
    """Two groups with shares 0.4 and 0.5 on average, against the effect of a cause that varies with their sizes."""
    rng = np.random.default_rng(0)
    cause = rng.standard_normal(80)
    share = expit(1.2 * cause + 0.7 * rng.standard_normal(80))
    people = rng.binomial(400, share)
    logits = np.stack([-0.4 + cause, cause if kind == "hidden" else 0 * cause], axis=1)
    cells = rng.binomial(np.stack([people, 400 - people], axis=1), expit(logits))
    votes = pd.DataFrame({"ann": cells.sum(axis=1), "bob": 400 - cells.sum(axis=1)})
    truth = cells.sum(axis=0) / [people.sum(), (400 - people).sum()]
    return pd.DataFrame({"black": people, "white": 400 - people}), votes, truth, pd.DataFrame({"cause": cause})


def test_confounded_precincts_are_warned_of_and_corrected_by_covariates() -> None:
    people, votes, truth, cause = confounded("hidden")
    plain, corrected = cross_table(people, votes), cross_table(people, votes, covariates=cause)
    errors = [np.abs(each.shares["ann"].to_numpy() - truth).max() for each in (plain, corrected)]
    assert errors[0] > 0.1 > 0.05 > errors[1]
    line = corrected.differences.query("outcome == 'ann'").iloc[0]
    assert line["shift"] < -0.2
    assert line["shift_p"] < 1e-6
    with warned("confounded precincts"):
        assert cross_table(*confounded("of one group")[:2]).curvature.max() < 1e-4
    assert cross_table(*simulated()[:2]).curvature.min() > 0.001


def test_unrelated_covariates_are_rarely_significant() -> None:
    people, votes, _ = simulated()
    groups, outcomes = people.to_numpy(float), votes.to_numpy(float)
    rng, shares, found = np.random.default_rng(0), np.zeros((groups.shape[1], outcomes.shape[1])), []
    for _ in range(200):
        covariates = rng.standard_normal((len(people), 2))
        regressions = Confounding.of(groups, outcomes, np.ones(len(people)), covariates, 0.01)
        found += [regressions.differences([*people], [*votes], shares, shares[None])["shift_p"]]
    assert 0.02 < (np.array(found) < 0.05).mean() < 0.09


def test_robustness_matches_regression() -> None:
    people, votes, _ = simulated(40)
    people = people[["black", "white"]].assign(white=people["white"] + people["asian"])
    table = cross_table(people, votes)
    size, line = people.sum(axis=1).to_numpy(), table.differences.query("outcome == 'ann'").iloc[0]
    x, y = people["black"].to_numpy() / size, votes["ann"].to_numpy() / size
    root = np.sqrt(size / (1 + (size - 1) * table.fitted.rho))
    design = np.column_stack([np.ones(40), x]) * root[:, None]
    left = np.linalg.lstsq(design, y * root, rcond=None)[1]
    scale = np.sqrt(left[0] * np.linalg.inv(design.T @ design)[1, 1])  # error times the root of degrees of freedom
    bias = scale * np.sqrt(line["robustness"] ** 2 / (1 - line["robustness"]))
    assert bias == pytest.approx(abs(line["difference"]))
    assert line["difference_lower"] < line["difference"] < line["difference_upper"]
    others = cross_table(simulated(40)[0].assign(nobody=0), votes).differences
    assert len(others) == 3 * 3, "each pair of groups with people, and each outcome"
    assert others["robustness"].between(0, 1).all()
    assert cross_table(people[:2], votes[:2]).differences["robustness"].isna().all()
