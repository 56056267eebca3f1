"""Commands whose help has examples and groups of options, and the options that several commands have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import hint
from llpbench.running.settings import DEFAULT_PRESET, OPTIONS, PRESETS

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

RUN = {
    "What to run": (
        *("preset", "config", "study", "methods", "datasets", "baggings", "bag_sizes", "max_bags", "seeds", "encoders"),
        *("pretraining", "numbers", "plugin", "retry", "keep_stale", "dry_run"),
    ),
    "Training": ("epochs", "patience", "bags_per_step", "set", "ensemble", "average"),
    "Tuning": ("tune", "tune_regimes", "tune_sampler", "tune_seed"),
    "Machine": (
        *("device", "threads", "compile", "precision", "executor", "ray_address", "time_budget", "cell_timeout"),
        "data_dir",
    ),
    "Output": ("out", "plots", "save_predictions"),
}
"""Options of run and plan, by the heading of their group."""

OWN_DATA = {
    "Bags": (
        *("bags", "bag_column", "counts", "proportions", "class_column", "suppressed", "size_column", "classes"),
        "rest_as",
        *("sampled", "as_shares", "noise", "drop_unmatched", "suppress_impossible", "whole_bags"),
    ),
    "Rows": ("weight_column", "leave_out", "keep_key", "by", "out_of_core", "most_rows"),
    "Method": (
        *("method", "methods", "settings", "encoder", "numbers", "ensemble", "folds", "repeats"),
        *("time_column", "seed", "plugin"),
    ),
    "Output": ("out", "where", "among", "plot", "label"),
    "Format of the files (normally detected). For one file only: rows:VALUE or bags:VALUE, such as rows:cp1252": (
        *("types", "separator", "decimal", "encoding", "skip_rows", "missing"),
    ),
}
"""Options of fit, choose, predict and estimate, by the heading of their group."""

CROSS_TABLE = {
    "Table": ("groups", "outcomes", "rest_as", "precinct_column", "covariates", "size_column", "weight_column", "seed"),
    "Output": ("out", "among", "differences", "plot"),
    "Format of the file (normally detected)": ("separator", "decimal", "encoding", "skip_rows", "missing"),
}
"""Options of estimate-table, by the heading of their group."""

REPORT = {"What to show": ("journals", "study", "metric", "plugin"), "Output": ("out", "plots_dir", "no_plots")}


COMMANDS = {
    "Your data": ("fit", "predict", "estimate", "estimate-table", "choose", "effects"),
    "Benchmark": ("run", "plan", "compare", "report", "merge", "list", "check", "data"),
}
"""Commands of llpbench, by the heading of their group."""


class _WithExamples(click.Command):
    """Command or group whose help begins with examples. `groups` are names by the heading of their group."""

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), groups: Mapping[str, Sequence[str]] | None = None, **others: Any
    ) -> None:
        super().__init__(*args, **others)
        self.examples, self.groups = examples, groups or {}

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        super().format_help_text(ctx, formatter)


class Command(_WithExamples):
    """Command whose help has examples and options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        group_of = {name: title for title, names in self.groups.items() for name in names}
        found: dict[str, list[tuple[str, str]]] = {title: [] for title in (*self.groups, "Options")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                name, text = record
                text = re.sub(r"; x>=\d+\]$", "]", text.replace("  [", " ["))
                found[group_of.get(param.name or "", "Options")].append((name, text))
        for title, records in found.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class CommandGroup(_WithExamples, click.Group):
    """Group of commands whose help has examples and commands by group."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, self.commands))
        for title, names in (self.groups or {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(room)) for name in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command with a name. Raises a usage error with the nearest names if there is none."""
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing and args[0][:1] != "-":
            known = self.list_commands(ctx)
            ctx.fail(f"unknown command {args[0]!r}. {hint(args[0], known)}Available: {', '.join(known)}.")
        return super().resolve_command(ctx, args)


class AnyPath(click.Path):
    """A path. Unlike in click, an empty text is an error, not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises `LLPBenchError` if it is empty."""
        if not str(value).strip():
            name = param.get_error_hint(ctx).strip("'") if param else "a path"
            raise LLPBenchError(f"{name} must be a path, got {value!r}.")
        return super().convert(value, param, ctx)


def add_options(command: _Decorated, options: Sequence[Callable[[Any], Any]]) -> _Decorated:
    """Add options and arguments to a command, in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def run_options(command: _Decorated) -> _Decorated:
    """Add --preset, --config and the flags of `settings.OPTIONS` to a command."""
    default = _default(f"{DEFAULT_PRESET}; with --study: paper")
    text = f"Named set of defaults for all other options: {' or '.join(PRESETS)}.{default}"
    added = [
        click.option("--preset", metavar="NAME", help=text),
        click.option("--config", metavar="FILE", help="TOML file. Its keys are names of options."),
    ]
    for name, option in OPTIONS.items():
        form, text = option.read.form, f"{option.help}{_default(option.default)}"
        flag = f"--{name}/--no-{name}" if form == "switch" else f"--{name}"
        added.append(click.option(flag, default=None, metavar=option.read.metavar, multiple=form == "many", help=text))
    return add_options(command, added)


def _default(value: Any) -> str:
    """Return a default as text for the help; "" for switches."""
    if value is None or isinstance(value, bool):
        return ""
    return f" [default: {','.join(map(str, value)) if isinstance(value, tuple) else value}]"


plugin_option = click.option("--plugin", multiple=True, metavar="FILE", help=OPTIONS["plugin"].help)
data_dir_option = click.option("--data-dir", metavar="DIR", help=OPTIONS["data-dir"].help)
journal_option = click.option(
    "--journal",
    "journals",
    multiple=True,
    type=AnyPath(),
    metavar="PATH",
    help="Journal file or folder, or the name of published results, such as core. May be repeated. [default: OUT]",
)
_OUT = OPTIONS["out"]
out_option = click.option(
    "--out", type=AnyPath(), metavar="DIR", default=str(_OUT.default), show_default=True, help=_OUT.help
)


def load_plugins(plugin: Iterable[str]) -> None:
    from llpbench.core.registry import load_plugin

    for path in plugin:
        load_plugin(path)
