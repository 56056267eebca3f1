"""Writes the reference pages that are made from the code: `methods.md` and `columns.md`. A test demands that they fit.

python docs/generate.py
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from llpbench.core.cell import Protocol
from llpbench.core.criteria import CRITERIA, METRICS
from llpbench.core.entries import Entry
from llpbench.core.ranges import declarations, ranges
from llpbench.core.registry import METHODS
from llpbench.interactive.tidy import COLUMNS
from llpbench.running.settings import OPTIONS, PRESETS, default

EQUATIONS: dict[str, str] = {
    "ahil": "L = L_bag + weight · meanᵢ ωᵢ CE( argmax f(xᵢ), f(strong view) ),  ω from entropies of row and bag",
    "bag-contrast": "L = meanₖ<ₗ ‖ rₖ − rₗ ‖² / (1/mₖ + 1/mₗ) + level ‖ r̄ ‖²,  rₖ = meanᵢ f(xᵢ) − p̄ₖ",
    "bag-gp": "logit f(x) = logit π + b + Σⱼ gⱼ(xⱼ) + Σᵢⱼ gᵢⱼ(xᵢ, xⱼ) + …,  g Gaussian;  p̄ₖ = meanᵢ f(xᵢ) + noise",
    "bag-gp-gbdt": "softmax( ⅓ log p_bag-gp + ⅓ log p_em-gbdt + ⅓ log p_count-gbdt )",
    "bag-mean-linear": "min over β of Σₖ mₖ ‖ p̄ₖ − β · meanᵢ xᵢ ‖² + strength ‖β‖²,  f(x) = β · x",
    "bag-share": "f(x) = π;  of a row in a known bag k: p̄ₖ",
    "bag-soft-label": "L = meanᵢ KL( p̄ of i's bag ‖ f(xᵢ) ),  over shuffled rows",
    "bag-soft-label-gbdt": "targets p̄ of each row's bag, histogram gradient boosting",
    "bag-soft-label-linear": "targets p̄ of each row's bag, a linear model",
    "count-gbdt": "max over F of Σₖ log P( Σᵢ yᵢ = nₖ ),  yᵢ ~ Bernoulli(sigmoid F(xᵢ))",
    "count-loss": "L = −meanₖ log P( Σᵢ yᵢ = nₖ ),  yᵢ ~ f(xᵢ) independent",
    "debiased-square": "L = meanₖ mₖ ‖ p̄ₖ − meanᵢ f(xᵢ) + oₖ ‖² + ‖ oₖ ‖²,  oₖ = mean f of the other bags − π",
    "dllp": "L = meanₖ KL( p̄ₖ ‖ meanᵢ f(xᵢ) )",
    "easy-llp": "L = meanₖ meanᵢ Σ_c (mₖ p̄ₖc − (mₖ − 1) π_c) ℓ_c(xᵢ)",
    "em-gbdt": "qᵢ = softmax( F(xᵢ) + shift of i's bag ) with Σᵢ qᵢ = nₖ;  then F fits q by cross-entropy; and again",
    "eprm": "L = meanₖ ‖ meanᵢ f(xᵢ) − p̄ₖ ‖²,  or another distance",
    "interpolated": "L = ρ KL( p̄ₖ ‖ meanᵢ f(xᵢ) ) + (1 − ρ) meanᵢ KL( p̄ₖ ‖ f(xᵢ) )",
    "llp-aae": "L = L_bag + reconstruction · ‖ x − decoder(f(x), style) ‖²,  f(x) and style deceive two critics",
    "llp-co": "L = −½ meanᵢ Σ_c [ Q¹ log softmax(s²/0.1) + Q² log softmax(s¹/0.1) ],  Q the transport of s to nₖ",
    "llp-gan": "L_D = −E_real log σ(s) − E_fake log σ(−s) + weight · L_bag;  L_G = ‖ E_real h − E_fake h ‖²",
    "llp-vat": "L = L_bag + w(t) KL( f(x) ‖ f(x + r) ),  r the worst direction of a fixed length",
    "llpfc": "L = −meanᵢ log Σ_c Tⱼc f(xᵢ)_c,  Tⱼc = P(bag j of its group | class c)",
    "mixbag": "−Σ_c p̃_c log( mean f of a mixed bag )_c,  classes inside an interval of p̃ left out",
    "moment-matching": "L = mean over r ≤ order of CE( classes of r rows as counted, as predicted )",
    "plot": "stage 1: L_bag;  stage 2: CE( y, f(x) ) + noise · RCE on mixed rows, labels y with Σᵢ [yᵢ = c] = nₖc",
    "rot": "stage 1: L_bag;  stage 2: meanᵢ CE( Qᵢ, f(xᵢ) ),  Q the transport of log f to nₖ with entropy",
    "self-llp": "L = L_bag + task_weight · CE(which rotation) + teacher_weight · w(t) meanᵢ ‖ f(xᵢ) − f_teacher(xᵢ) ‖²",
    "selfclr-llp": "L = L_bag − weight · meanᵢ log softmaxⱼ( sim(zᵢ, zⱼ) )ᵢ",
    "sim-llp": "L = similarity · meanᵢⱼ exp(−‖φᵢ − φⱼ‖²) ‖ f(xᵢ) − f(xⱼ) ‖² + bag_weight · meanₖ ‖ rₖ ‖²",
    "supervised": "L = −meanᵢ log f(xᵢ) of i's label",
    "supervised-gbdt": "histogram gradient boosting on labels",
    "tabllp-bdc": "L(t) = λ(t) · weight · L_Diff + γ(t) L_bag,  λ = exp(−5 (1 − t/T)²),  γ = max(1 − λ, gamma_floor)",
    "tabllp-dec": "qᵢc ∝ 1 / (1 + ‖zᵢ − μc‖²),  tᵢc ∝ qᵢc² / f_c;  L = KL( t ‖ q ) + gamma · L_bag on q",
    "tabllp-pse": "stage 1: L_bag;  stage 2: cross-entropy to labels of k-means with Σᵢ [ŷᵢ = c] = nₖc",
    "tabllp-self": "L = L_bag + weight · InfoNCE( g₁(clean view), g₂(mixed view) )",
}
"""in a line, p̄ₖ the proportions of bag k, nₖ its counts, f(x) the predicted probabilities, L_bag the loss of dllp"""

FAMILIES = {
    "Floors": ("bag-share", "bag-soft-label"),
    "Ceilings": ("supervised", "supervised-gbdt"),
    "Direct methods": (
        *("bag-gp-gbdt", "bag-gp", "em-gbdt", "count-gbdt"),
        *("bag-mean-linear", "bag-soft-label-linear", "bag-soft-label-gbdt"),
    ),
    "Neural methods": (
        *("dllp", "eprm", "count-loss", "moment-matching", "bag-contrast", "debiased-square", "easy-llp"),
        *("interpolated", "mixbag", "llpfc", "rot", "plot", "ahil", "sim-llp", "self-llp", "llp-co", "llp-vat"),
        *("llp-gan", "llp-aae", "selfclr-llp"),
        *("tabllp-self", "tabllp-dec", "tabllp-pse", "tabllp-bdc"),
    ),
}

INTRODUCTION = """# Methods

Every method: its loss in a line, what it is, where it differs from its paper and why, and its hyperparameters. Written
by `python docs/generate.py` from the files in `methods/`.

In all of them k is a bag of mₖ rows, p̄ₖ its proportions, nₖ its counts, π the proportions over all training bags, f(x)
the predicted probabilities of a row, z its row vector, and L_bag the loss of [dllp](#dllp). *The paper* is "Class-aware
and Augmentation-free Contrastive Learning from Label Proportion" by Jialiang Wang, Ning Zhang, Shimin Di, Ruidong Wang
and Lei Chen; its method is [tabllp-bdc](#tabllp-bdc). What every neural method has besides (`learning_rate`,
`weight_decay`, `dropout`, `hidden`) is left out of the tables.
"""

COMMON = ("learning_rate", "weight_decay", "dropout", "hidden")


def methods() -> str:
    """The page of methods."""
    parts = [INTRODUCTION]
    for family, names in FAMILIES.items():
        parts.append(f"## {family}\n")
        parts += [_method(METHODS.entry(name)) for name in names]
    return "\n".join(parts)


def _method(entry: Entry) -> str:
    declared = entry.load()
    told = importlib.import_module(entry.module).__doc__ or ""
    file = f"methods/{entry.module.rpartition('.')[2]}.py"
    lines = [f"### {entry.name}\n", f"    {EQUATIONS[entry.name]}\n", f"{told.strip()}\n"]
    facts = [entry.facts["kind"], *(filter(None, (entry.facts["role"], entry.facts["reference"]))), f"`{file}`"]
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


def columns() -> str:
    """The page of names: columns of results, options, criteria and metrics."""
    parts = [
        "# Names\n\nColumns of `Results.frame`, options of `llpbench run` and `llpbench.run`, criteria and metrics. "
        "Written by `python docs/generate.py`.\n",
        "## Columns of results\n\n| column | meaning |\n| --- | --- |",
        *(f"| `{name}` | {_cell(meaning)} |" for name, meaning in COLUMNS.items()),
        "\n## Options of a run\n\n`--bag-sizes` of the command is `bag_sizes=` in Python and `bag-sizes` in a file.\n"
        "\n| option | default | meaning |\n| --- | --- | --- |",
        *(f"| `{name}` | {_default(name)} | {_cell(option.help)} |" for name, option in OPTIONS.items()),
        "\n## Presets\n\n`--preset NAME`; what it leaves open is the paper's: "
        f"{Protocol.epochs} epochs, patience {Protocol.patience}.\n\n| option | {' | '.join(PRESETS)} |\n"
        f"| --- |{' --- |' * len(PRESETS)}",
        *(
            f"| `{name}` | {' | '.join(str(preset.get(name, '')).replace(',', ', ') for preset in PRESETS.values())} |"
            for name in dict.fromkeys(name for preset in PRESETS.values() for name in preset)
        ),
        "\n## Criteria\n\nA criterion chooses the epoch.\n\n| criterion | regime | what it is | better |"
        "\n| --- | --- | --- | --- |",
        *(
            f"| `{c.name}` | {c.regime} | {c.title} | {'higher' if c.maximise else 'lower'} |"
            for c in CRITERIA.values()
        ),
        "\n## Metrics\n\nA metric judges predictions on the test rows. Boards show the percentages times 100.\n"
        "\n| metric | what it is | better |\n| --- | --- | --- |",
        *(f"| `{m.name}` | {m.title} | {'higher' if m.maximise else 'lower'} |" for m in METRICS.values()),
    ]
    return "\n".join(parts) + "\n"


def _default(name: str) -> str:
    value = default(name)
    return "" if value is None else f"`{','.join(value) if isinstance(value, tuple) else value}`"


def _cell(text: str) -> str:
    """A text inside a Markdown table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


PAGES = {"methods.md": methods, "columns.md": columns}


def main() -> None:
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
