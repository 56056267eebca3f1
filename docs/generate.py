"""Write what is computed: the pages `methods.md`, `datasets.md` and `columns.md`, and `datasets/facts.json`.

A test fails if a page differs from the code, or the facts from a table. `LLPBENCH_DATA` names a folder of tables that
the repository does not have.

python docs/generate.py
"""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.entries import Entry
from llpbench.core.ranges import declarations, ranges
from llpbench.core.registry import METHODS, SUITES
from llpbench.data.facts import FACTS, Facts, built_in_facts
from llpbench.data.loading import EMBEDDED, load_table, locate
from llpbench.data.sources import Generated
from llpbench.data.specs import DatasetSpec, dataset_specs
from llpbench.data.suites import suite_datasets
from llpbench.results.frame import COLUMNS
from llpbench.running.settings import OPTIONS, PRESETS, default

EQUATIONS: dict[str, str] = {
    "ahil": "L = L_bag + weight · meanᵢ ωᵢ CE( argmax f(xᵢ), f(strong view) ),  ω from entropies of row and bag",
    "alternating-mean-map": "labels y of the largest logits with Σᵢ [yᵢ = c] = nₖc;  then logistic regression;  repeat",
    "bag-contrast": "L = meanₖ<ₗ ‖ rₖ − rₗ ‖² / (1/mₖ + 1/mₗ) + level ‖ r̄ ‖²,  rₖ = meanᵢ f(xᵢ) − p̄ₖ",
    "bag-forest": "p̄ₖ = Σⱼ Hₖⱼ θⱼ + noise,  Hₖⱼ the fraction of bag k in leaf j;  f(x) = mean of θ over trees",
    "bag-gp": "logit f(x) = logit π + b + Σⱼ gⱼ(xⱼ) + Σⱼₗ gⱼₗ(xⱼ, xₗ) + …,  j, l: features; "
    "each g is a Gaussian process;  p̄ₖ = mean f + noise",
    "bag-gp-gbdt": "softmax( ⅓ log p_bag-gp + ⅓ log p_em-gbdt + ⅓ log p_count-gbdt )",
    "bag-mean-linear": "min over β of Σₖ mₖ ‖ p̄ₖ − β · meanᵢ xᵢ ‖² + strength ‖β‖²,  f(x) = β · x",
    "bag-share": "f(x) = p̄ₖ for a row of training bag k, otherwise π",
    "bag-soft-label": "L = meanᵢ KL( p̄ of i's bag ‖ f(xᵢ) ),  over shuffled rows",
    "bag-soft-label-gbdt": "gradient-boosted trees with the p̄ of a row's bag as target",
    "bag-soft-label-knn": "f(x) = mean of p̄ over the bags of the k nearest training rows",
    "bag-soft-label-linear": "linear model with the p̄ of a row's bag as target",
    "cluster-shares": "min over 0 ≤ v ≤ 1 of Σₖ (mₖ / mean m) ( p̄ₖ − Rₖ · v )² + shrinkage Σⱼ (vⱼ − π)²",
    "count-bayes": "naive Bayes by EM,  qᵢ = softmax( log P(xᵢ, y) + shift of the bag ) with Σᵢ qᵢ = nₖ",
    "count-gbdt": "max over F of Σₖ log P( Σᵢ yᵢ = nₖ ),  yᵢ ~ Bernoulli(sigmoid F(xᵢ))",
    "count-linear": "max over W of Σₖ log P( Σᵢ yᵢ = nₖ ) − ½ strength ‖W‖²,  yᵢ ~ softmax(W xᵢ + b)",
    "count-loss": "L = −meanₖ log P( Σᵢ yᵢ = nₖ ),  yᵢ ~ f(xᵢ) independent",
    "debiased-square": "L = meanₖ mₖ ‖ p̄ₖ − meanᵢ f(xᵢ) + oₖ ‖² + ‖ oₖ ‖²,  oₖ = mean f of the other bags − π",
    "dllp": "L = meanₖ KL( p̄ₖ ‖ meanᵢ f(xᵢ) )",
    "easy-llp": "L = meanₖ meanᵢ Σ_c (mₖ p̄ₖc − (mₖ − 1) π_c) ℓ_c(xᵢ)",
    "em-gbdt": "qᵢ = softmax( F(xᵢ) + shift of the bag ) with Σᵢ qᵢ = nₖ;  fit F to q by cross-entropy;  repeat",
    "eprm": "L = meanₖ ‖ meanᵢ f(xᵢ) − p̄ₖ ‖²,  or another distance",
    "interpolated": "L = ρ KL( p̄ₖ ‖ meanᵢ f(xᵢ) ) + (1 − ρ) meanᵢ KL( p̄ₖ ‖ f(xᵢ) )",
    "inv-cal": "min of ½ ‖w‖² + C Σₖ max( 0, | w · meanᵢ xᵢ + b − logit p̄ₖ | − εₖ ),  εₖ = ε / ( p̄ₖ (1 − p̄ₖ) )",
    "laplacian-mean-map": "min over B of Σₖ (mₖ / mean m) ‖ meanᵢ xᵢ − Σ_c p̄ₖc Bₖc ‖² + γ Σ_c tr( B_cᵀ L B_c );  "
    "then as mean-map",
    "llp-aae": "L = L_bag + reconstruction · ‖ x − decoder(f(x), style) ‖²,  f(x) and style deceive two critics",
    "llp-co": "L = −½ meanᵢ Σ_c [ Q¹ log softmax(s²/0.1) + Q² log softmax(s¹/0.1) ],  Q transport plan of s to nₖ",
    "llp-gan": "L_D = −E_real log σ(s) − E_fake log σ(−s) + weight · L_bag;  L_G = ‖ E_real h − E_fake h ‖²",
    "llp-vat": "L = L_bag + w(t) KL( f(x) ‖ f(x + r) ),  r the worst direction of a fixed length",
    "llpfc": "L = −meanᵢ log Σ_c Tⱼc f(xᵢ)_c,  i in bag j of its group,  Tⱼc = P(bag j | class c)",
    "mean-map": "M = (ΠᵀDΠ)⁻¹ ΠᵀD (bag means);  min of Σᵢ log Σ_c exp fᵢc − N Σ_c π_c f_c(M_c) + ½ strength ‖w‖²",
    "mixbag": "L = −Σ_c p̃_c log( mean f of a mixed bag )_c,  without classes whose mean f is in an interval around p̃_c",
    "moment-matching": "L = mean over r ≤ order of CE( counted classes of r rows, predicted classes of r rows )",
    "plot": "stage 1: L_bag;  stage 2: CE( y, f(x) ) + noise · RCE on mixed rows, labels y with Σᵢ [yᵢ = c] = nₖc",
    "prop-svm": "min over w, y of ½ ‖w‖² + C Σᵢ hinge(yᵢ fᵢ) + C_p Σₖ mₖ | share of y in bag k − p̄ₖ |",
    "rot": "stage 1: L_bag;  stage 2: meanᵢ CE( Qᵢ, f(xᵢ) ),  Q the entropic transport plan of log f to nₖ",
    "self-llp": "L = L_bag + task_weight · CE(which rotation) + teacher_weight · w(t) meanᵢ ‖ f(xᵢ) − f_teacher(xᵢ) ‖²",
    "selfclr-llp": "L = L_bag − weight · meanᵢ log softmaxⱼ( sim(zᵢ, zⱼ) )ᵢ",
    "sim-llp": "L = similarity · meanᵢⱼ exp(−‖φᵢ − φⱼ‖²) ‖ f(xᵢ) − f(xⱼ) ‖² + bag_weight · meanₖ ‖ rₖ ‖²",
    "supervised": "L = −meanᵢ log f(xᵢ)_c,  c the label of row i",
    "supervised-gbdt": "gradient-boosted trees on labels",
    "tabllp-bdc": "L(t) = λ(t) · weight · L_Diff + γ(t) L_bag,  λ = exp(−5 (1 − t/T)²),  γ = max(1 − λ, gamma_floor)",
    "tabllp-dec": "qᵢc ∝ 1 / (1 + ‖zᵢ − μc‖²),  tᵢc ∝ qᵢc² / f_c;  L = KL( t ‖ q ) + gamma · L_bag on q",
    "tabllp-pse": "stage 1: L_bag;  stage 2: cross-entropy to labels of k-means with Σᵢ [ŷᵢ = c] = nₖc",
    "tabllp-self": "L = L_bag + weight · InfoNCE( g₁(clean view), g₂(mixed view) )",
}
"""The loss or model of each method, in one line; `INTRODUCTION` explains the symbols."""

HEADINGS = {
    "floor": "Floors",
    "direct": "Direct methods",
    "classical": "Classical methods",
    "neural": "Neural methods",
    "pseudo-label": "Pseudo-label methods",
    "ceiling": "Ceilings",
}
"""Heading of each family, in the order of the page."""

INTRODUCTION = """# Methods

This page shows the loss of each method in one line, a description, differences from the paper, and hyperparameters. It
is generated by `python docs/generate.py` from the files in `methods/`.

| symbol | meaning |
| --- | --- |
| i, c | a row and a class |
| k, mₖ | a bag and its number of rows |
| p̄ₖ, nₖ | proportions and counts of bag k |
| π | proportions over all training bags |
| f(x) | predicted probabilities of a row |
| z | row vector |
| L_bag | loss of [dllp](#dllp) |

*The paper* is "Class-aware and Augmentation-free Contrastive Learning from Label Proportion" by Jialiang Wang, Ning
Zhang, Shimin Di, Ruidong Wang and Lei Chen. Its method is [tabllp-bdc](#tabllp-bdc). Every neural method also has the
hyperparameters `learning_rate`, `weight_decay`, `dropout` and `hidden`, which the tables leave out.

`--methods family:classical` runs all methods of a family. `--methods all` runs the default set, {default} of the {all}
methods. The others are marked as not part of `all`.
"""

COMMON = ("learning_rate", "weight_decay", "dropout", "hidden")


def methods() -> str:
    """Return the page of methods."""
    every = list(METHODS.entries())
    counts = {"default": sum(not entry.facts["extra"] for entry in every), "all": len(every)}
    parts = [INTRODUCTION.format(**counts)]
    for family, heading in HEADINGS.items():
        parts.append(f"## {heading}\n")
        entries = (entry for entry in METHODS.entries() if entry.family == family)
        parts += [_method(entry) for entry in sorted(entries, key=lambda entry: entry.facts["extra"])]
    return "\n".join(parts)


def _method(entry: Entry) -> str:
    declared = entry.load()
    description = importlib.import_module(entry.module).__doc__ or ""
    file = f"methods/{entry.module.rpartition('.')[2]}.py"
    lines = [f"### {entry.name}\n", f"    {EQUATIONS[entry.name]}\n", f"{description.strip()}\n"]
    kind = entry.facts["kind"] + ", not part of `all`" * entry.facts["extra"]
    facts = [kind, *(filter(None, (entry.facts["role"], entry.facts["reference"]))), f"`{file}`"]
    lines.append(f"*{', '.join(map(str, facts[:-1]))}*, {facts[-1]}\n")
    searched = ranges(declared.Params)
    rows = [
        f"| `{name}` | {value} | {searched.get(name, '–')} | {_cell(meaning)} |"
        for name, (value, meaning) in declarations(declared.Params).items()
        if name not in COMMON or entry.facts["kind"] == "direct" or entry.name == "llp-gan"
    ]
    if rows:
        lines += ["| hyperparameter | default | searched | meaning |", "| --- | --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


DATASETS_INTRODUCTION = """# Datasets

This page lists all datasets with labels. It is generated by `python docs/generate.py` from the files in `datasets/`.

The column *where* gives the source: embedded in the package, or downloaded from OpenML or GroupLens. Datasets in the
*data directory* cannot be downloaded: put `NAME.parquet` into the folder given by `--data-dir` or `LLPBENCH_DATA`. The
docstring of a dataset's file names the original source and all changes. A natural key in *italics* makes bags but is
not a feature.
"""

OPENML_DATASETS = """## Any dataset of OpenML

`--datasets openml:31` uses the dataset with this number in OpenML; `--datasets openml-suite:99` uses all datasets of a
suite.

- OpenML defines target, types, missing values and ignored columns. With two classes, the later one in string order is
  positive.
- The first run or `llpbench data fetch openml:31` downloads the dataset. Later runs need no network. `llpbench list
  datasets` shows downloaded datasets.
- To use a copy on another machine, put `openml-31.parquet` into that machine's cache or `--data-dir`. The last column
  of the file is the target.
- Sparse datasets, and datasets without a default target or with a numeric target, are errors. For these, write a
  dataset file with `source=OpenML(31)` that makes the classes (`CONTRIBUTING.md`).
"""


def datasets() -> str:
    """Return the page of datasets and suites."""
    suites = {entry.name: suite_datasets(entry.name) for entry in SUITES.entries()}
    specs = [spec for spec in dataset_specs() if spec.bags is None]
    parts = [
        DATASETS_INTRODUCTION,
        OPENML_DATASETS,
        "## Suites\n\n`--datasets suite:NAME` selects all datasets of a suite. `llpbench list suites` shows which of "
        "them are missing\non your machine.\n\n| suite | datasets | summary |\n| --- | ---: | --- |",
        *(f"| `{e.name}` | {len(suites[e.name])} | {_cell(e.summary)} |" for e in SUITES.entries()),
        "\n## All datasets\n\n| dataset | code | rows | numeric + categorical | classes | positive | natural keys "
        "| suites | licence | where |\n| --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- | --- |",
        *(_dataset(spec, [name for name, members in suites.items() if spec.name in members]) for spec in specs),
    ]
    return "\n".join(parts) + "\n"


def _dataset(spec: DatasetSpec, suites: list[str]) -> str:
    facts = built_in_facts()[spec.name]
    share = "" if spec.positive is None else f"{facts.classes[spec.positive] / facts.rows:.1%}"
    keys = (f"*{key}*" if key in spec.key_only else key for key in spec.natural_keys)
    embedded = (EMBEDDED / f"{spec.name}.parquet").exists()
    source = "embedded" if embedded else spec.source.describe() if spec.source else "data directory"
    cells = (
        *(f"`{spec.name}`", spec.code, f"{facts.rows:,}", f"{len(facts.numeric)} + {len(facts.categorical)}"),
        *(str(len(facts.classes)), share, ", ".join(keys), ", ".join(suites), spec.licence, source),
    )
    return f"| {' | '.join(cells)} |"


def columns() -> str:
    """Return the page of names: columns of results, options, criteria and metrics."""
    parts = [
        "# Names\n\nColumns of `Results.frame`, options of `llpbench run` and `llpbench.run`, criteria and metrics.\n"
        "This page is generated by `python docs/generate.py`.\n",
        "## Columns of results\n\n| column | meaning |\n| --- | --- |",
        *(f"| `{name}` | {_cell(meaning)} |" for name, meaning in COLUMNS.items()),
        "\n## Options of a run\n\nFor example, the option `--bag-sizes` is `bag_sizes=` in Python and `bag-sizes` in a "
        "configuration file.\n"
        "\n| option | default | meaning |\n| --- | --- | --- |",
        *(f"| `{name}` | {_default(name)} | {_cell(option.help)} |" for name, option in OPTIONS.items()),
        "\n## Presets\n\nA preset (`--preset NAME`) sets these defaults. If a preset does not set epochs and patience, "
        f"the paper's\napply: {Protocol.epochs} epochs, patience {Protocol.patience}.\n\n"
        f"| option | {' | '.join(PRESETS)} |\n"
        f"| --- |{' --- |' * len(PRESETS)}",
        *(
            f"| `{name}` | {' | '.join(str(preset.get(name, '')).replace(',', ', ') for preset in PRESETS.values())} |"
            for name in dict.fromkeys(name for preset in PRESETS.values() for name in preset)
        ),
        "\n## Criteria\n\nA criterion chooses the epoch. mPIoU is the mean over bags and classes of min(p, q) / "
        "max(p, q), with p the\npredicted and q the true proportion. Hard predictions count each row for its most "
        "probable class."
        "\n\n| criterion | regime | meaning | better |"
        "\n| --- | --- | --- | --- |",
        *(
            f"| `{c.name}` | {c.regime} | {c.title} | {'higher' if c.maximise else 'lower'} |"
            for c in CRITERIA.values()
        ),
        "\n## Metrics\n\nA metric scores predictions, on the test rows unless its meaning says otherwise. Only "
        "ceilings see the labels of\ntraining rows. Boards show rates such as AUC times 100.\n"
        "\n| metric | meaning | better |\n| --- | --- | --- |",
        *(f"| `{m.name}` | {m.title} | {'higher' if m.maximise else 'lower'} |" for m in METRICS.values()),
    ]
    return "\n".join(parts) + "\n"


def _default(name: str) -> str:
    value = default(name)
    return (
        ""
        if value is None or isinstance(value, bool)
        else f"`{','.join(value) if isinstance(value, tuple) else value}`"
    )


def _cell(text: str) -> str:
    """Return a text for a cell of a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


PAGES = {"methods.md": methods, "datasets.md": datasets, "columns.md": columns}


def write_facts() -> None:
    """Write `datasets/facts.json`: facts of tables on this machine, and the former facts of the others.

    Generated tables take seconds, so that their former facts are kept, too.
    """
    facts = dict(built_in_facts())
    for spec in dataset_specs():
        generated = isinstance(spec.source, Generated) and spec.name in facts
        if spec.prepare.__module__.startswith("llpbench.datasets.") and locate(spec) and not generated:
            facts[spec.name] = Facts.of(load_table(spec.name, download=False))
    lines = (f"{json.dumps(name)}: {facts[name].json()}" for name in sorted(facts))
    FACTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    built_in_facts.cache_clear()


def main() -> None:
    write_facts()
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
