"""The page of `llpbench choose`, in a real browser: it asks for nothing, and fits a phone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from browser import chrome_fixture, complaints, open_page, prefer, requested, resize  # noqa: F401

from llpbench.report.html import choice_page
from llpbench.report.plots.bag_shares import BagShares, held_out_shares, sizes_and_shares
from llpbench.report.plots.plot import Plot
from llpbench.report.plots.saving import save_figure
from llpbench.report.report_table import Heading, ReportTable, number, text

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

HOSTILE = '"><img src=http://example.org/x onerror=alert(1)>'


@pytest.mark.parametrize("classes", [2, 3])
def test_the_page_leaves_its_file_for_nothing(classes: int, tmp_path: Path, chrome: Chrome) -> None:
    rng = np.random.default_rng(0)
    names = [HOSTILE, "yes", "maybe"][:classes]
    bags = BagShares(rng.integers(1, 2000, 30), rng.dirichlet(np.ones(classes), 30), names)
    predicted = {name: rng.dirichlet(np.ones(classes), 30) for name in ("bag-gp-gbdt", HOSTILE)}
    plots = []
    for name, draw in (("one", lambda: held_out_shares(bags, predicted)), ("two", lambda: sizes_and_shares(bags))):
        save_figure(draw, tmp_path / f"{name}.svg")
        plots.append(Plot(name, HOSTILE, HOSTILE, (tmp_path / f"{name}.svg").read_text(encoding="utf-8")))
    headings = (Heading("method", numeric=False), *(Heading(f"criterion {place}") for place in range(6)))
    row = (text(HOSTILE, strong=True), *(number(0.5) for _ in range(6)))
    page = choice_page(
        HOSTILE, "Take it.", "Beware.", {"Bags": "30"}, [ReportTable("n", "T", "C", headings, (row,))], plots
    )
    resize(chrome, 390)
    prefer(chrome, "dark")
    open_page(chrome, page, tmp_path, scripts=False)
    assert {address.partition(":")[0] for address in requested(chrome)} == {"file", "data"}
    assert complaints(chrome) == []
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= 390
    assert chrome.execute_script("return [...document.images].every(each => each.naturalWidth > 100)")
    dark, light = chrome.execute_script("return getComputedStyle(document.body).backgroundColor"), "rgb(247, 247, 245)"
    assert dark != light
    assert chrome.execute_script("return document.querySelector('.lede').textContent") == "Take it."
