"""The commands of llpbench. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli import FAILED, INTERRUPTED, USAGE
from llpbench.cli.applying import effects, estimate, predict
from llpbench.cli.estimating_tables import estimate_table
from llpbench.cli.listing import LISTING
from llpbench.cli.options import (
    COMMANDS,
    REPORT,
    RUN,
    AnyPath,
    CommandGroup,
    journal_option,
    load_plugins,
    out_option,
    plugin_option,
    run_options,
)
from llpbench.cli.output import OutputError, echo, print_table, standard_streams, tables_console
from llpbench.cli.own_data import choose, fit
from llpbench.core import __version__
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import clean, plural, some_of
from llpbench.running.interrupts import interruptible
from llpbench.running.settings import PLOTS, Settings, resolve

if TYPE_CHECKING:
    from llpbench.core.record import Record
    from llpbench.report.publishing import Published
    from llpbench.results.journal import Contents, Preference
    from llpbench.results.studies import Study
    from llpbench.running.planning import Plan


_CLICK_WORDS = {
    "a valid float.": "a number",
    "a valid integer.": "a whole number",
    "a valid integer range.": "a whole number",
}


def main() -> None:
    """The `llpbench` command."""
    with interruptible(to_the_end=True), standard_streams():
        code = _code()
    gc.freeze()  # or Python would search the objects of all libraries for garbage before it exits
    sys.exit(code)


def _code() -> int:
    """Run a command line and return its exit code."""
    try:
        code = int(cli(prog_name="llpbench", standalone_mode=False) or 0)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except LLPBenchError as error:
        from llpbench.cli.reading_options import flag_of

        return _fail(error.in_shell(flag_of))
    except click.ClickException as error:
        return _fail(_message_of(error))
    except (KeyboardInterrupt, click.Abort):
        kept = "Finished work is saved. Run the same command again to continue."
        resumable = sys.argv[1:2] == ["run"] and "--dry-run" not in sys.argv
        advice = kept if resumable else "Run the same command again to start over."
        echo(f"llpbench: interrupted. {advice}", err=True)
        return INTERRUPTED
    except MemoryError:  # also from arrow
        return _fail(
            "the memory is full. Give fewer rows, or use --out-of-core with fit, predict and estimate.", FAILED
        )
    except OutputError as error:
        return _fail(str(error), FAILED)
    except BrokenPipeError:  # llpbench data fetch | head
        return FAILED


def _message_of(error: click.ClickException) -> str:
    """Return the message of an error of click in the words of this package."""
    if not (isinstance(error, click.BadParameter) and error.param is not None and error.ctx is not None):
        return error.format_message()
    name = error.param.get_error_hint(error.ctx).strip("'")
    if isinstance(error, click.MissingParameter):
        add = f" Add {name} {error.param.make_metavar(error.ctx)}." if name.startswith("-") else ""
        return f"{name} is missing.{add}"
    value, is_not, wanted = error.message.partition(" is not ")
    wanted = _CLICK_WORDS.get(wanted, wanted.removesuffix("."))
    return f"{name} must be {wanted}, got {value}." if is_not else error.format_message()


def _fail(message: str, code: int = USAGE) -> int:
    echo(f"llpbench: {message}", err=True)
    return code


@click.group(
    cls=CommandGroup,
    groups=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=(
        "llpbench run",
        "llpbench fit people.csv --bags votes.csv --bag-column district --counts no,yes --out model",
    ),
)
@click.version_option(__version__, prog_name="llpbench", message="%(prog)s %(version)s")
def cli() -> None:
    """Benchmark and toolkit for learning from label proportions (LLP) on tables.

    `llpbench run` without options compares the 22 default methods on Adult in minutes.
    """


for _command in (*LISTING, choose, effects, estimate, estimate_table, fit, predict):
    cli.add_command(_command)


@cli.command(
    "run",
    groups=RUN,
    examples=(
        "llpbench run --out my-results",
        "llpbench run --methods dllp,bag-gp --datasets adult --bag-sizes 64,256 --seeds 3",
    ),
)
@run_options
@click.option("--dry-run", is_flag=True, help="Only show the plan, as llpbench plan does.")
def _run(preset: str | None, config: str | None, dry_run: bool, **flags: Any) -> int:
    """Run missing cells, then write leaderboards and plots.

    They are in the folder --out. Stale runs (made by older code) are repeated. The defaults below are those of --preset
    quick (with --study: paper). If a command was interrupted, run it again to continue.
    """
    settings = _settings(preset, config, flags)
    if dry_run:
        return _show_plan(settings)
    from llpbench.interactive.loaded import Results
    from llpbench.running import runner
    from llpbench.running.display import Display

    chosen = None if settings.study is None else _select_studies(settings.study)
    summary = runner.run(settings, Display.on_stderr())
    results = Results.of(summary.contents)
    published = results.publish(settings.out, plots=settings.out / PLOTS if settings.plots else None)
    _show_published(published, chosen, results.records)
    return FAILED if summary.incomplete else 0


@cli.command(
    "plan",
    groups=RUN,
    examples=("llpbench plan --preset paper", "llpbench plan --methods default --datasets suite:core --seeds 3"),
)
@run_options
def _plan(preset: str | None, config: str | None, **flags: Any) -> int:
    """Show what a run would do and how long it would take."""
    return _show_plan(_settings(preset, config, flags))


@cli.command(
    "report",
    groups=REPORT,
    examples=("llpbench report --out results", "llpbench report --journal mine --journal published --out both"),
)
@journal_option
@out_option
@click.option("--plots", "plots_dir", type=AnyPath(), metavar="DIR", help="Folder of the plots. [default: OUT/plots]")
@click.option("--no-plots", is_flag=True, help="Skip the plots (the slowest part).")
@click.option("--study", metavar="NAMES", help="Show studies instead of leaderboards.")
@click.option("--metric", metavar="NAME", help="Metric that boards show and rank by. [default: auc]")
@plugin_option
def _report(
    journals: tuple[str, ...],
    out: str,
    plots_dir: str | None,
    no_plots: bool,
    study: str | None,
    metric: str | None,
    plugin: tuple[str, ...],
) -> int:
    """Write leaderboards, plots and the page from journals."""
    from llpbench.interactive.loaded import Results

    if no_plots and plots_dir is not None:
        raise LLPBenchError("--plots and --no-plots cannot be combined. Leave one of them out.")
    load_plugins(plugin)
    chosen = None if study is None else _select_studies(study)
    results = Results.of(_merged(journals or (os.path.join(".", out),)))  # `./core` is a folder, `core` our results
    plots = None if no_plots else plots_dir or Path(out) / PLOTS
    published = results.publish(out, plots=plots, metric=metric or "auc")
    _show_published(published, chosen, results.records)
    return 0


@cli.command("merge", examples=("llpbench merge part-1 part-2 --out all", "llpbench merge 'parts/*' --out results"))
@click.argument("journals", nargs=-1, required=True, type=AnyPath(), metavar="JOURNAL...")
@out_option
@click.option(
    "--prefer", type=click.Choice(["newest", "first"]), help="Which result to keep if several results of a run differ."
)
def _merge(journals: tuple[str, ...], out: str, prefer: Preference | None) -> int:
    """Join journals into the journal of --out.

    JOURNAL is a journal or its folder. If several journals have the same results of a run, the run is kept once. If
    results differ, all are kept and reports flag them. If test AUC differs by more than 2 points, none counts until
    --prefer decides.
    """
    from llpbench.results.merging import merge_into

    merged = merge_into(Path(out), _journal_files(journals), prefer)
    _warn(merged)
    searches = f"; {plural(len(merged.tunings), 'search')}" if merged.tunings else ""
    left = f"; {plural(merged.superseded, 'result')} of other code left out" if merged.superseded else ""
    found = f"{plural(len(merged.runs), 'run')}, {len(merged.disputes)} of them with different results"
    echo(f"{found}{left}{searches}: {out}")
    return 0


@cli.command(
    "compare",
    examples=("llpbench compare --out my-results", "llpbench compare --with dllp,tabllp-bdc --out my-results"),
)
@click.option(
    "--with",
    "rivals",
    metavar="NAMES",
    help="Methods to compare yours with, paired by task and seed. [default: dllp, tabllp-bdc and the best one]",
)
@click.option(
    "--against",
    type=click.Choice(["published", "core", "few-bags", "natural", "rare", "multiclass", "paper"]),
    help="What to compare with: our boards of the paper's datasets (published), those of a suite (core, few-bags, ...) "
    "or the numbers printed in the paper (paper). [default: core, or the boards that share most tasks with your runs]",
)
@journal_option
@out_option
def _compare(rivals: str | None, against: str | None, journals: tuple[str, ...], out: str) -> int:
    """Compare your results with published ones.

    The first lines show the rank of each of your methods among the published ones, and its difference from named
    methods with a 95 % interval. The published board with your methods follows.
    """
    merged = _merged(journals or (os.path.join(".", out),))
    if against == "paper":
        if rivals is not None:
            raise LLPBenchError("--against paper cannot be combined with --with. Leave one of them out.")
        _show_studies(_select_studies("paper"), list(merged.counting.values()), beside=True)
        return 0
    from llpbench.report.comparing import compare, shared_tasks
    from llpbench.report.terminal import render
    from llpbench.results.staleness import comparison

    if against is None:
        against, told = shared_tasks(merged.counting.values())
        echo(told)
    reference = _merged([against])
    parts = [records.values() for each in (reference, merged) for records in (each.counting, each.tunings)]
    named = [*filter(None, (name.strip() for name in (rivals or "").split(",")))]
    found = compare(merged, reference, comparison(chain(*parts)), rivals=named)
    for line in (*found.ranks(), *found.differences, *found.remarks):
        echo(line)
    render(found.leaderboards, tables_console(), yours=found.yours)
    return 0


def _settings(preset: str | None, config: str | None, flags: dict[str, Any]) -> Settings:
    given = {name.replace("_", "-"): value for name, value in flags.items() if value is not None and value != ()}
    return resolve(given, preset=preset, config=None if config is None else Path(config))


def _show_plan(settings: Settings) -> int:
    gc.disable()  # imports make so many objects that collections take a tenth of the time
    try:
        from llpbench.running import runner
        from llpbench.running.estimates import estimate_text

        found, seconds = runner.preview(settings, lambda text: echo(text, err=True))
    finally:
        gc.enable()
    print_table(["cell", "state", "done", "failed", "stale", "missing"], _plan_rows(found))
    for change in found.changes:
        echo(f"stale: {change}")
    for reason in found.reasons:
        echo(f"impossible: {reason}")
    for doubt in found.doubts:
        echo(f"warning: {doubt}")
    echo(f"{found}; {estimate_text(seconds)} one after the other")
    return 0


def _plan_rows(plan: Plan) -> Iterator[Sequence[str]]:
    """Yield searches and cells with their states and seeds."""
    from llpbench.training.specification import configuration  # torch

    for planned in plan.entries:
        differs = configuration(planned.cell)
        name = f"{planned.tuning or planned.cell}{f' ({differs})' if differs else ''}"
        yield name, planned.state, *map(_seeds, (planned.done, planned.failed, [*planned.stale], planned.missing))


def _seeds(seeds: Sequence[int]) -> str:
    """Return `0-9` for consecutive seeds, `0,3,7` otherwise."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ",".join(map(str, seeds))


def _show_published(published: Published, studies: Sequence[Study] | None, records: Sequence[Record]) -> None:
    """Print the leaderboards of a report, or the tables of studies, and the places of its files."""
    from llpbench.report.terminal import render

    if studies is None:
        render(published.report.leaderboards, tables_console())
    else:
        _show_studies(studies, records)
    for line in published.places:
        echo(line, err=True)


def _show_studies(chosen: Sequence[Study], records: Sequence[Record], *, beside: bool = False) -> None:
    """Return tables of studies; with `beside` a summary first, then tables with the paper's numbers beside ours."""
    from llpbench.report.study_tables import beside_paper, study_tables
    from llpbench.report.terminal import render_tables
    from llpbench.report.wording import caption
    from llpbench.results.frame import tidy
    from llpbench.results.staleness import stale_reasons

    frame = tidy(records, stale_reasons(records))
    found = [(study, study_tables(study, frame)) for study in chosen]
    if beside:
        compared, summary = beside_paper([table for _, tables in found for table in tables])
        echo(f"{summary}\n")
        render_tables(compared, tables_console())
        return
    for study, tables in found:
        render_tables([made.table for made in tables], tables_console())
        if not tables:
            echo(f"{study.title}: {caption('nothing_of_study', study=study.name)}")


def _select_studies(pattern: str) -> list[Study]:
    from llpbench.results.studies import Study

    return Study.select(pattern)


def _journal_files(names: Sequence[str]) -> list[Path]:
    from llpbench.results.merging import SHIPPED, journal_files

    for name in SHIPPED.keys() & {name for name in names if Path(name).is_dir()}:
        echo(f"llpbench: {name} is our published journal. Your folder is ./{name}.", err=True)
    return [path for name in names for path in journal_files(name)]


def _merged(names: Sequence[str]) -> Contents:
    """Return merged journals. Prints their warnings."""
    from llpbench.results.merging import merge

    merged = merge(_journal_files(names))
    _warn(merged)
    return merged


def _warn(merged: Contents) -> None:
    for line in some_of([*merged.warnings, *merged.disputes]):
        echo(f"llpbench: {clean(line)}", err=True)
