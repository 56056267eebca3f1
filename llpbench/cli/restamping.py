"""`llpbench restamp`: keep stale runs whose numbers have not changed."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.cli import FAILED
from llpbench.cli.helping import Command
from llpbench.cli.options import data_dir_option, out_option, plugin_option
from llpbench.cli.output import echo
from llpbench.core.text import plural


@click.command(
    cls=Command, examples=("llpbench restamp --out results", "llpbench restamp --out results --sample 50 --seed 1")
)
@out_option
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of cells to repeat.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Random seed of the sample."
)
@click.option(
    "--reference",
    metavar="PATH",
    help="Compare with this journal of runs by the old code on this machine.",
)
@data_dir_option
@plugin_option
def restamp(
    out: str, sample: int, seed: int, reference: str | None, data_dir: str | None, plugin: tuple[str, ...]
) -> int:
    """Repeat a sample of stale runs, and keep the others if no number changes.

    Searches for hyperparameters are kept with the runs of their methods.
    """
    from llpbench.results.merging import journal_files
    from llpbench.running.display import make_display
    from llpbench.running.restamp import restamp as make_again

    told = () if reference is None else journal_files(reference)
    done = make_again(
        Path(out), make_display(), sample=sample, seed=seed, data_dir=data_dir, plugins=plugin, reference=told
    )
    if done.difference:
        echo(f"llpbench: nothing restamped. {done.difference}", err=True)
        return FAILED
    kept = plural(done.renewed, "run") + (f" and {plural(done.searches, 'tuning')}" if done.searches else "")
    echo(
        f"{kept} restamped: {plural(done.compared, 'run')} in "
        f"{plural(done.cells, 'repeated cell')} gave the same numbers."
    )
    for line in done.left:
        echo(f"still stale: {line}")
    return 0
