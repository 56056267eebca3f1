"""`--help` with examples first and options in groups; suggestions for unknown commands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from llpbench.core.text import hint

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
"""Options of run, tune and plan, by the heading of their group."""

OWN_DATA = {
    "Bags": (
        *("bags", "bag_column", "counts", "proportions", "class_column", "suppressed", "size_column", "classes"),
        "rest_as",
        *("sampled", "as_shares", "noise", "drop_unmatched", "suppress_impossible", "whole_bags"),
    ),
    "Rows": ("weight_column", "leave_out", "keep_key", "by", "out_of_core", "most_rows"),
    "Method": (
        *("method", "methods", "settings", "encoder", "numbers", "pretraining", "ensemble", "folds", "repeats"),
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

REPORT = {
    "What to show": ("journals", "study", "datasets", "metric", "plugin"),
    "Output": ("out", "plots_dir", "no_plots", "title"),
}


class Command(click.Command):
    """Command whose help begins with examples."""

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), groups: Mapping[str, Sequence[str]] | None = None, **others: Any
    ) -> None:
        super().__init__(*args, **others)
        self.examples, self.groups = examples, groups or {}

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the description of the command."""
        _write_examples(self.examples, formatter)
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group. Options without a group are last."""
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


class CommandGroup(click.Group):
    """Group of commands whose help begins with examples."""

    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[str] = (), **others: Any) -> None:
        super().__init__(*args, **others)
        self.examples = examples

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, then the description of the commands."""
        _write_examples(self.examples, formatter)
        super().format_help_text(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command with a name. Raises a usage error with the nearest names if there is none."""
        if args and self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing and args[0][:1] != "-":
            self._refuse(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _refuse(self, ctx: click.Context, name: str) -> NoReturn:
        known = self.list_commands(ctx)
        ctx.fail(f"unknown command {name!r}. {hint(name, known)}Available: {', '.join(known)}.")


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
