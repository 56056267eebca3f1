"""`llpbench effects`: effects of single features in a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.helping import Command
from llpbench.cli.options import AnyPath, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError

if TYPE_CHECKING:
    from llpbench.owndata.classifier import LLPClassifier


@click.command(cls=Command, examples=("llpbench effects model", "llpbench effects model --class yes --out effects.svg"))
@click.argument("model", type=AnyPath(path_type=Path))
@click.option("--class", "label", metavar="NAME", help="Class that effects are on. [default: the last]")
@click.option(
    "--out",
    type=AnyPath(path_type=Path),
    metavar="FILE",
    default="effects.png",
    show_default=True,
    help="Plot: .png, .svg or .pdf.",
)
@plugin_option
def effects(model: Path, label: str | None, out: Path, plugin: tuple[str, ...]) -> int:
    """Show the strongest effects of features.

    MODEL is the folder that `llpbench fit` wrote. Effects come with their uncertainty.
    """
    load_plugins(plugin)
    check_plot(out, "--out")
    from llpbench.cli.console_tables import effects_table, show
    from llpbench.owndata.classifier import LLPClassifier
    from llpbench.report.plots.own_data import effect_panels
    from llpbench.report.plots.saving import save_figure

    fitted = LLPClassifier.load(model)
    name = class_of(fitted, label)
    found = fitted.effects(name)
    save_figure(lambda: effect_panels(found, f"{model}: effects on {name}"), out)
    show(effects_table(found))
    echo(f"{model}, {len(fitted.bags_):,} bags: effects on the {found[0].scale} of {name}; plot: {out}")
    return 0


def check_plot(path: Path, flag: str) -> None:
    """Raise `LLPBenchError` if a plot cannot be written, before minutes of work."""
    from llpbench.core.files import obstacle
    from llpbench.report.plots.saving import check_suffix

    check_suffix(path)
    if why := "it is a folder" if path.is_dir() else obstacle(path):
        raise LLPBenchError(f"plot {str(path)!r} cannot be written: {why}. Choose another {flag}.")


def class_of(model: LLPClassifier, label: str | None) -> Any:
    """Return the class that --class names, or the last one."""
    names = {str(name): name for name in model.classes_.tolist()}
    if label is not None and label not in names:
        raise LLPBenchError(f"--class must be one of {', '.join(names)}, got {label!r}.")
    return [*names.values()][-1] if label is None else names[label]
