"""`llpbench effects`: effects of single features in a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from llpbench.cli.helping import Command
from llpbench.cli.options import AnyPath, data_dir_option, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError

if TYPE_CHECKING:
    from llpbench.core.effects import FeatureEffect
    from llpbench.owndata.classifier import LLPClassifier

_OF_DATASETS = ("dataset", "bagging", "bag_size", "seed", "method", "data_dir")


@click.command(
    cls=Command, examples=("llpbench effects model --class yes --out effects.svg", "llpbench effects --dataset adult")
)
@click.argument("model", required=False, type=AnyPath(path_type=Path))
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
@click.pass_context
def effects(
    context: click.Context,
    model: Path | None,
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

    MODEL is the folder that `llpbench fit` wrote. Without it, a method is fitted to bags of a dataset first.
    Effects come with their uncertainty.
    """
    load_plugins(plugin)
    check_plot(Path(out), "--out")
    if model is None:
        found, title, bags, name = _of_dataset(dataset, bagging, bag_size, seed, method, label, data_dir)
    else:
        given = [each for each in _OF_DATASETS if context.get_parameter_source(each) is ParameterSource.COMMANDLINE]
        if given:
            flag = f"--{given[0].replace('_', '-')}"
            raise LLPBenchError(
                f"{flag} and MODEL cannot be combined, because the model is already fitted. Leave one out."
            )
        found, title, bags, name = _of_model(model, label)
    from llpbench.cli.console_tables import effects_table, show
    from llpbench.report.plots.own_data import effect_panels
    from llpbench.report.plots.saving import save_figure

    save_figure(lambda: effect_panels(found, f"{title}: effects on {name}"), Path(out))
    show(effects_table(found))
    echo(f"{title}, {bags:,} bags: effects on the {found[0].scale} of {name}; plot: {out}")
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


_Found = tuple[Sequence["FeatureEffect"], str, int, str]
"""effects, their title, the number of bags, and the class"""


def _of_model(folder: Path, label: str | None) -> _Found:
    from llpbench.owndata.classifier import LLPClassifier

    model = LLPClassifier.load(folder)
    name = class_of(model, label)
    return model.effects(name), str(folder), len(model.bags_), str(name)


def _of_dataset(
    dataset: str, bagging: str, bag_size: int, seed: int, method: str, label: str | None, data_dir: str | None
) -> _Found:
    from llpbench.core.effects import Explained
    from llpbench.core.method import DirectMethod
    from llpbench.core.registry import METHODS
    from llpbench.core.seeding import generator
    from llpbench.data.loading import load_table
    from llpbench.data.splits import assign_bags
    from llpbench.data.tasks import build_task, name_effects
    from llpbench.training.specification import make_cell

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
    return found, str(cell), len(task.train.sizes), name
