"""Write the computed files: the pages `methods.md`, `datasets.md` and `columns.md`, and `datasets/facts.json`.

A test fails if a page differs from the code or the boards, or the facts from a table. `LLPBENCH_DATA` names a folder of
tables that the repository does not have.

python docs/generate.py
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA, METRICS, Metric
from llpbench.core.registry import DATASETS, METHODS, SUITES, Entry
from llpbench.data.loading import EMBEDDED, load_table, locate, suite_datasets
from llpbench.data.sources import Generated, OpenML, Parquet
from llpbench.data.specs import FACTS, DatasetSpec, Facts, built_in_facts, dataset_spec
from llpbench.results.frame import COLUMNS
from llpbench.running.settings import PRESETS

HEADINGS = {
    "floor": "Floors",
    "direct": "Direct methods",
    "classical": "Classical methods",
    "neural": "Neural methods",
    "pseudo-label": "Pseudo-label methods",
    "control": "Control",
    "ceiling": "Ceilings",
}
"""Heading of each family, in the order of the page."""

INTRODUCTION = """# Methods

For each method: what it does, its loss L (minimised) or model, its source, and the file with details and differences
from published code. `llpbench list params NAME` shows hyperparameters.

*Core* is mean AUC × 100 (50 is chance) of the method's best setting on the [boards without
labels](../leaderboards/core/README.md), with its rank among {entries} entries (some methods have several). Proportions
choose the epochs of networks. Empty: not on these boards.

{table}

`--methods default` selects the {default} methods that are not in italics (*extra*), `all` all {all}, `family:classical`
a family. A family is a heading; a kind is *neural* (trained in steps, with an encoder) or *direct* (fitted by its own
algorithm, as all classical methods).

## Symbols

| symbol | meaning |
|---|---|
| i, c | a row and a class |
| k, mₖ | a bag and its number of rows |
| p̄ₖ, nₖ | class proportions and class counts of bag k; p̄ₖc, nₖc: those of class c |
| π | class proportions over all training bags |
| xᵢ, yᵢ | features and unknown class of row i |
| f(x) | class probabilities of a row (a logit in [Direct methods](direct-methods.md)) |
| F(x) | logit of boosted trees |
| zᵢ | row vector: output of the encoder |
| rₖ | residual of a bag, meanᵢ f(xᵢ) − p̄ₖ |
| L_bag | loss of [dllp](#dllp) |
| InfoNCE | contrastive loss: the partner of a row must be more similar to it than other rows |
| KL( p ‖ q ), CE( p, q ) | Kullback-Leibler divergence and cross-entropy of prediction q from target p |
| w, W, β | weights of a linear model |
| [y = c] | 1 if y is c, otherwise 0 |
| Σᵢ, meanᵢ with nₖ or p̄ₖ | over the rows of bag k; Σᵢ [yᵢ = c] = nₖc: labels match the counts |
| words such as `strength` | hyperparameters |
| shift of the bag | constant added to the logits of all rows of a bag |
| t, T | epoch, and the largest number of epochs |
"""

_ARXIV = "https://arxiv.org/abs/"
PAPERS = {
    "Ardehaly & Culotta 2017": _ARXIV + "1709.04108",
    "Asanomi et al. 2023": _ARXIV + "2308.08822",
    "Busa-Fekete et al. 2023": _ARXIV + "2302.03115",
    "Busa-Fekete et al. 2025": _ARXIV + "2505.05355",
    "Dulac-Arnold et al. 2019": _ARXIV + "1905.12909",
    "Flaxman et al. 2015": "https://doi.org/10.1145/2783258.2783300",
    "Goodman 1953": "https://doi.org/10.2307/2088121",
    "Javanmard et al. 2024": _ARXIV + "2402.04987",
    "Kotzias et al. 2015": "https://doi.org/10.1145/2783258.2783380",
    "Law et al. 2018": _ARXIV + "1805.08463",
    "Li, Chen, Javanmard & Mirrokni 2024": _ARXIV + "2406.00487",
    "Liu et al. 2019": _ARXIV + "1909.02180",
    "Liu et al. 2021": _ARXIV + "2105.10635",
    "Musicant et al. 2007": "https://doi.org/10.1109/ICDM.2007.50",
    "Patrini et al. 2014": "https://proceedings.neurips.cc/paper/2014/hash/a8baa56554f96369ab93e4f3bb068c22-Abstract.html",
    "Quadrianto et al. 2009": "https://www.jmlr.org/papers/v10/quadrianto09a.html",
    "Rosenman & Viswanathan 2018": _ARXIV + "1802.01053",
    "Saket, Raghuveer & Ravindran 2022": "https://proceedings.mlr.press/v151/saket22a.html",
    "Shukla et al. 2023": _ARXIV + "2311.13718",
    "Somepalli et al. 2021": _ARXIV + "2106.01342",
    "TabLLP-BDC paper": _ARXIV + "2408.06743",
    "Tsai & Lin 2020": _ARXIV + "1910.13188",
    "Xie et al. 2016": _ARXIV + "1511.06335",
    "Yu et al. 2013": _ARXIV + "1306.0886",
    "Yu et al. 2014": _ARXIV + "1402.5902",
    "Zhang et al. 2020": _ARXIV + "2004.06316",
    "Zhang, Wang & Scott 2022": _ARXIV + "2203.02496",
}
"""Address of each cited paper that has a free text or a DOI."""

FAMILIES = {
    "floor": "the simplest; others should be better",
    "direct": "trees, a Gaussian process, counts; the default, `bag-gp-gbdt`",
    "classical": "linear models, neighbours, clusters of the older literature",
    "neural": "networks with losses on bags",
    "pseudo-label": "networks that also learn from labels which they guess",
    "control": "sees only [labels that choose epochs](reading.md#words)",
    "ceiling": "see all labels",
}
"""What the methods of a family are."""

BOARDS = Path(__file__).parents[1] / "leaderboards" / "core" / "boards.csv"


def methods() -> str:
    """Return the page of methods."""
    families = {
        family: sorted((e for e in METHODS.entries() if e.family == family), key=lambda e: e.facts["extra"])
        for family in HEADINGS
    }
    scores, entries = _scores_on_core()
    lines = ["| method | core, ordered | core, random |", "|---|---:|---:|"]
    for family, members in families.items():
        heading = HEADINGS[family]
        lines.append(f"| **[{heading}](#{heading.lower().replace(' ', '-')})**: {FAMILIES[family]} | | |")
        lines += [f"| {_link(each)} | {' | '.join(scores[each.name])} |" for each in members if each.name in scores]
        if others := [_link(each) for each in members if each.name not in scores]:
            lines.append(f"| {', '.join(others)} | | |")
    every = [entry for members in families.values() for entry in members]
    counts = {"default": sum(not entry.facts["extra"] for entry in every), "all": len(every), "entries": entries}
    parts = [INTRODUCTION.format(**counts, table="\n".join(lines))]
    for family, members in families.items():
        parts += [f"## {HEADINGS[family]}\n", *map(_method, members)]
    return "\n".join(parts)


def _link(method: Entry) -> str:
    link = f"[{method.name}](#{method.name})"
    return f"*{link}*" if method.facts["extra"] else link


def _scores_on_core() -> tuple[dict[str, tuple[str, str]], int]:
    """Return a score such as `76.1 (11)` of each method in ordered and random bags, and the number of ranked entries.

    A score is the mean AUC of the method's best entry with complete runs on the boards of core without labels, with its
    rank, if it has one.
    """
    with BOARDS.open(encoding="utf-8", newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["criterion"] == "mpiou" and line["mean"]]
    scores: dict[str, dict[str, str]] = {}
    for line in lines:  # entries of a board are sorted, best first
        rank = f" ({line['rank']})" if line["rank"] else ""
        scores.setdefault(line["method"], {}).setdefault(line["bagging"], f"{float(line['mean']):.1f}{rank}")
    pairs = {method: (of.get("ordered", ""), of.get("random", "")) for method, of in scores.items()}
    return pairs, max(int(line["rank"]) for line in lines if line["rank"])


def _method(entry: Entry) -> str:
    title, *text = (importlib.import_module(entry.module).__doc__ or "").strip().split("\n\n")
    formula = text[0].removeprefix("    ") if text and text[0].startswith("    ") else ""
    name, separator, summary = title.replace("\n", " ").partition(": ")
    if not separator or name.lower().replace(" ", "-") not in (entry.name, entry.name.replace("-", "")):
        summary = f"{name}{separator}{summary}"
    reference = entry.facts["reference"]
    for paper, address in PAPERS.items():
        reference = reference.replace(paper, f"[{paper}]({address})")
    file = f"{entry.module.rpartition('.')[2]}.py"
    kind = entry.facts["kind"] if entry.facts["role"] else ""  # otherwise the family says it
    facts = ", ".join(filter(None, [kind, reference]))
    where = f"*{facts}* [`{file}`](../methods/{file})"
    parts = [f"### {entry.name}", summary[0].upper() + summary[1:]]
    parts += [f"```text\n{textwrap.dedent('    ' + formula)}\n```"] if formula else []
    return "\n\n".join([*parts, where]) + "\n"


DATASETS_INTRODUCTION = """# Datasets

All {labelled} datasets with labels; two more, {others}, have none, so no board can score
them. Generated by `python docs/generate.py`.

## Suites

`--datasets suite:NAME` selects all datasets of a suite. `llpbench list datasets` shows which of them are missing on
your machine. The boards `few-bags` use the datasets of core.

| suite | datasets | on the published boards | summary |
|---|---:|---:|---|"""

ALL_DATASETS = """
## All datasets

- *Classes*: number of classes; with two, the share of rows in the positive class.
- *Suites*: ● marks datasets of natural and multiclass on the published boards. Of paper, boards lack movielens_1m and
  road_safety. Embedded datasets, except flights_2013, are also in `embedded`.
- *Natural keys*: columns whose values make bags. A key in *italics* is not a feature.
- *Where*: embedded datasets are part of the package ([sources and licences](../datasets/embedded/ATTRIBUTION.md));
  others are downloaded from OpenML or [GroupLens](https://grouplens.org/datasets/movielens/1m/).
  For those with *file* and its source, put `NAME.parquet` into the folder `--data-dir` or `LLPBENCH_DATA`.

| dataset | question | rows | numeric+categorical features | classes | natural keys \
| suites | where; licence |
|---|---|---:|---:|---:|---|---|---|"""

SOURCES = {
    "cces_2016": "`TV16`, R package stevedata",
    "chem97": "`Chem97`, R package mlmRev",
    "compas": "ProPublica, `compas-scores-two-years.csv`",
    "credit_raw": "Kaggle 2011, training file",
    "dutch_census": "Le Quy et al. 2022",
    "heloc": "FICO challenge 2018",
    "mpls_stops": "`MplsStops`, R package carData",
    "phoneme": "KEEL",
    "vehicle_fraud": "carclaims, `fraud_oracle.csv`",
    "weather_aus": "`weatherAUS.csv`, R package rattle",
}
"""Source of each table of the data directory, as in its docstring."""

OPENML_DATASETS = """
## Any dataset of OpenML

`--datasets openml:31` uses the dataset with this number in OpenML; `--datasets openml-suite:99` uses all datasets of a
suite.

- OpenML defines target, types, missing values and ignored columns. With two classes, the later one in string order is
  positive.
- The first run or `llpbench data fetch openml:31` downloads the dataset.
- To use a copy on another machine, put `openml-31.parquet` into that machine's cache or `--data-dir`. The last column
  of the file is the target.
- Sparse datasets, and datasets without a default target or with a numeric target, are errors. For these, write a
  dataset file with `source=OpenML(31)` that makes the classes (`CONTRIBUTING.md`).
"""


def datasets() -> str:
    """Return the page of datasets and suites."""
    suites = {entry.name: suite_datasets(entry.name) for entry in SUITES.entries()}
    specs = [spec for spec in map(dataset_spec, DATASETS.names()) if spec.bags is None]
    others = " and ".join(f"`{spec.name}`" for spec in map(dataset_spec, DATASETS.names()) if spec.bags is not None)
    parts = [
        DATASETS_INTRODUCTION.format(labelled=len(specs), others=others),
        *(
            f"| `{each.name}` | {len(suites[each.name])} | {_on_boards(each.name)} | {_cell(each.summary)} |"
            for each in SUITES.entries()
        ),
        ALL_DATASETS,
        *(_dataset(spec, [name for name, members in suites.items() if spec.name in members]) for spec in specs),
        OPENML_DATASETS.rstrip(),
    ]
    return "\n".join(parts) + "\n"


def _on_boards(suite: str) -> str:
    """Return the number of datasets of the first published board of a suite; "" if it has none."""
    folder = Path(__file__).parents[1] / "leaderboards" / ("" if suite == "paper" else suite)
    if not (folder / "boards.csv").exists():
        return ""
    with (folder / "boards.csv").open(encoding="utf-8") as file:
        return next(csv.DictReader(file))["datasets"]


def _is_on_board(suite: str, dataset: str) -> bool:
    """Return whether a dataset is on the board of a suite with boards of some of its datasets."""
    journal = Path(__file__).parents[1] / "leaderboards" / suite / "journal"
    return suite in ("natural", "multiclass") and (journal / f"{dataset}.jsonl.xz").exists()


def _dataset(spec: DatasetSpec, suites: list[str]) -> str:
    facts = built_in_facts()[spec.name]
    classes = str(len(facts.classes))
    if spec.positive is not None:
        classes = f"{facts.classes[spec.positive] / facts.rows:.1%}"
    keys = (f"*{key}*" if key in spec.key_only else key for key in spec.natural_keys)
    source = spec.source.describe() if spec.source else f"file: {SOURCES.get(spec.name, '')}"
    if isinstance(spec.source, OpenML):
        source = f"[openml:{spec.source.id}](https://www.openml.org/d/{spec.source.id})"
    if (EMBEDDED / f"{spec.name}.parquet").exists():
        source = f"embedded, {source}" if spec.source else "embedded"
    if isinstance(spec.source, Parquet):
        source = f"embedded ({facts.rows:,} rows of {Path(spec.source.path).stem})"
    suites = [name + "●" * _is_on_board(name, spec.name) for name in suites if name != "embedded"]
    licence = spec.licence.replace("CC BY 4.0", "CC-BY-4.0")
    cells = (
        *(f"`{spec.name}`", _cell(spec.summary), f"{facts.rows:,}", f"{len(facts.numeric)}+{len(facts.categorical)}"),
        *(classes, ", ".join(keys), ", ".join(suites), f"{source}; {licence}"),
    )
    return f"| {' | '.join(cells)} |"


COLUMNS_INTRODUCTION = """# Columns and metrics

Columns of `Results.frame`, presets, criteria and metrics; generated by `python docs/generate.py`.

Most analyses need `method`, `dataset`, `bagging`, `bag_size`, `seed`, `criterion`, `test_auc`, `seconds_training`,
`status` and `stale`. [Reading a board](reading.md) explains floor, control and ceiling, [Running](running.md)
cells, [The protocol](protocol.md) baggings, pretraining and stages (parts of a training that follow each other).

## Columns of results

*Empty* is an empty text, *missing* is NaN or None. Times are wall-clock seconds unless the name has `cpu`. Report
`seconds_training`, as boards do. Metrics other than log loss, L1 and Brier are between 0 and 1; boards show them times
100."""

PARTS_OF_RUNS = {"run": "What ran", "status": "Outcome", "seconds": "Time and machine", "criterion": "Scores"}
"""Heading of each part of the columns, by the first column."""


def _columns_of_results() -> Iterator[str]:
    for name, meaning in COLUMNS.items():
        if name in PARTS_OF_RUNS:
            yield f"\n### {PARTS_OF_RUNS[name]}\n\n| column | meaning |\n|---|---|"
        if not name.startswith("test_"):
            yield f"| `{name}` | {_cell(meaning)} |"


def columns() -> str:
    """Return the page of columns of results, presets, criteria and metrics."""
    parts = [
        COLUMNS_INTRODUCTION,
        *_columns_of_results(),
        "| `test_METRIC` | a [metric](#metrics) of the test rows, such as `test_log_loss` |",
        "\n## Presets\n",
        _presets(),
        "\n## Criteria\n\nA criterion chooses the epoch. mPIoU is the mean over bags and classes of min(p, q) / "
        "max(p, q), with p the\npredicted and q the true proportion. Hard predictions count each row for its most "
        "probable class.\nRisks estimate the loss of rows from proportions: [`dsq`](methods.md#debiased-square), "
        "[`easyllp`](methods.md#easy-llp)."
        "\n\n| criterion (↓: lower is better) | regime | meaning |\n|---|---|---|",
        *(f"| `{c.name}`{_arrow(c.maximise)} | {c.regime} | {c.title} |" for c in CRITERIA.values()),
        "\n## Metrics\n\nA metric scores predictions, on the test rows unless its meaning says otherwise.\n"
        "\n| metric (↓: lower is better) | meaning |\n|---|---|",
        f"| {', '.join(f'`{m.name}`{_arrow(m.maximise)}' for m in METRICS.values() if _is_named(m))} | as named |",
        *(f"| `{m.name}`{_arrow(m.maximise)} | {m.title} |" for m in METRICS.values() if not _is_named(m)),
    ]
    return "\n".join(parts) + "\n"


def _presets() -> str:
    """Return the paragraph about presets."""
    paper = {name: str(value).replace(",", ", ") for name, value in PRESETS["paper"].items()}
    bags, encoder, pretraining = (paper[name] for name in ("baggings", "encoders", "pretraining"))
    text = (
        "`--preset quick` is the default (with `--study`: `paper`). `--preset paper` sets the paper's defaults: "
        f"{bags} bags of {paper['bag-sizes']} rows; encoder {encoder}; pretraining {pretraining}; "
        f"{paper['seeds']} seeds; at most {Protocol.epochs} epochs, patience {Protocol.patience}. "
        f"Its datasets are {paper['datasets']}. "
        "The suite `paper` adds movielens_1m; README's paper boards lack it and road_safety."
    )
    return textwrap.fill(text, 120)


def _is_named(metric: Metric) -> bool:
    """Return whether the title of a metric says no more than its name."""
    return metric.title.lower().replace(" ", "-") == metric.name


def _arrow(maximise: bool) -> str:
    return "" if maximise else "↓"


def _cell(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


PAGES = {"methods.md": methods, "datasets.md": datasets, "columns.md": columns}


def write_facts() -> None:
    """Write `datasets/facts.json`: facts of tables on this machine, and the former facts of the others.

    Generated tables take seconds, so that their former facts are kept, too.
    """
    facts = dict(built_in_facts())
    for spec in map(dataset_spec, DATASETS.names()):
        generated = isinstance(spec.source, Generated) and spec.name in facts
        if spec.prepare.__module__.startswith("llpbench.datasets.") and locate(spec) and not generated:
            facts[spec.name] = Facts.of(load_table(spec.name, download=False))
    lines = (f"{json.dumps(name)}: {facts[name].json()}" for name in sorted({*facts} & {*DATASETS.names()}))
    FACTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    built_in_facts.cache_clear()


def main() -> None:
    write_facts()
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
