"""`llpbench effects`: what a fitted method says of single features."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.cli.helping import Command
from llpbench.cli.options import AnyPath, data_dir_option, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError


@click.command(
    cls=Command, examples=("llpbench effects --dataset adult", "llpbench effects --dataset credit --out credit.svg")
)
@click.option("--dataset", default="adult", show_default=True, metavar="NAME", help="Dataset.")
@click.option("--bagging", default="ordered", show_default=True, metavar="NAME", help="How rows become bags.")
@click.option(
    "--bag-size", type=click.IntRange(min=2), default=256, show_default=True, metavar="N", help="Rows in a bag."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Random seed.",
)
@click.option(
    "--method", default="bag-gp", show_default=True, metavar="NAME", help="Method that has effects, such as bag-gp."
)
@click.option("--class", "label", metavar="NAME", help="Class that effects are on. [default: the last]")
@click.option(
    "--out",
    type=AnyPath(),
    metavar="FILE",
    default="effects.png",
    show_default=True,
    help="Plot: .png, .svg or .pdf.",
)
@data_dir_option
@plugin_option
def effects(
    dataset: str,
    bagging: str,
    bag_size: int,
    seed: int,
    method: str,
    label: str | None,
    out: str,
    data_dir: str | None,
    plugin: tuple[str, ...],
) -> int:
    """Show the strongest effects of features.

    Fits the method to bags first. Effects come with their uncertainty.
    """
    from llpbench.cli.console_tables import effects_table, show
    from llpbench.core.effects import Explained
    from llpbench.core.files import obstacle
    from llpbench.core.method import DirectMethod
    from llpbench.core.registry import METHODS
    from llpbench.core.seeding import generator
    from llpbench.data.loading import load_table
    from llpbench.data.splits import assign_bags
    from llpbench.data.tasks import build_task, name_effects
    from llpbench.report.plots.effect_panels import effect_panels
    from llpbench.report.plots.saving import check_suffix, save_figure
    from llpbench.training.specification import make_cell

    load_plugins(plugin)
    check_suffix(Path(out))
    if why := "it is a folder" if Path(out).is_dir() else obstacle(Path(out)):  # before minutes of fitting
        raise LLPBenchError(f"plot {out!r} cannot be written: {why}. Choose another --out.")
    declared, lacking = METHODS.get(method), f"method {method!r} has no effects of features. Use --method bag-gp."
    if not issubclass(declared, DirectMethod):
        raise LLPBenchError(lacking)
    table = load_table(dataset, data_dir)
    if label is not None and label not in table.classes:
        raise LLPBenchError(f"--class must be one of {', '.join(table.classes)}, got {label!r}.")
    cell = make_cell(method, dataset, bagging=bagging, bag_size=bag_size)
    assignment = assign_bags(table, cell.bagging, cell.bag_size, seed)
    task = build_task(table, assignment, supervision=declared.supervision)
    predictor = declared(declared.Params()).fit(task.train, task.schema, generator(seed, "training"))
    if not isinstance(predictor, Explained):
        raise LLPBenchError(lacking)
    name = table.classes[-1] if label is None else label
    found = name_effects(predictor.effects(table.classes.index(name)), table, assignment)
    save_figure(lambda: effect_panels(found, f"{cell}: effects on {name}"), Path(out))
    show(effects_table(found))
    echo(f"{cell}, {len(task.train.sizes):,} bags: effects on the {found[0].scale} of {name}; plot: {out}")
    return 0
