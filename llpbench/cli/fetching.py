"""`llpbench data`: find, download and check datasets."""

from __future__ import annotations

import click

from llpbench.cli import FAILED
from llpbench.cli.helping import CommandGroup
from llpbench.cli.options import data_dir_option, load_plugins, plugin_option
from llpbench.cli.output import echo
from llpbench.core.errors import LLPBenchError


@click.group(cls=CommandGroup, examples=("llpbench data list", "llpbench data fetch suite:core"))
def data() -> None:
    """Find, download and check datasets."""


@data.command("list", examples=("llpbench data list", "llpbench data list --data-dir tables"))
@data_dir_option
@plugin_option
def data_list(data_dir: str | None, plugin: tuple[str, ...]) -> int:
    """Show every dataset and where it is read from."""
    from llpbench.cli.console_tables import catalogue_table, show
    from llpbench.data.catalogue import catalogue

    load_plugins(plugin)
    show(catalogue_table(catalogue(data_dir)))
    return 0


@data.command("fetch", examples=("llpbench data fetch credit,electricity", "llpbench data fetch openml:31"))
@click.argument("datasets", default="all")
@data_dir_option
@plugin_option
def data_fetch(datasets: str, data_dir: str | None, plugin: tuple[str, ...]) -> int:
    """Download DATASETS that are not on this machine. [default: all that can be downloaded]"""
    from llpbench.data.loading import locate, provide
    from llpbench.data.specs import dataset_spec

    failed = 0
    names = _select_datasets(datasets, plugin)
    specs = map(dataset_spec, names if datasets == "all" else ())
    if without := [spec.name for spec in specs if spec.source is None and locate(spec, data_dir) is None]:
        echo(f"cannot be downloaded, put NAME.parquet into --data-dir: {', '.join(without)}")
    for name in (name for name in names if name not in without):
        try:
            place = provide(dataset_spec(name), data_dir)
            echo(f"{name}: {place.kind}, {place.path}")
        except LLPBenchError as error:  # continue with other datasets if a source is down
            echo(f"llpbench: {error}", err=True)
            failed += 1
    return FAILED if failed else 0


@data.command("verify", examples=("llpbench data verify", "llpbench data verify adult --data-dir tables"))
@click.argument("datasets", default="all")
@data_dir_option
@plugin_option
def data_verify(datasets: str, data_dir: str | None, plugin: tuple[str, ...]) -> int:
    """Check the local copies of DATASETS against their declarations."""
    from llpbench.cli.console_tables import findings_table, show
    from llpbench.data.catalogue import verify
    from llpbench.data.sources import Generated

    findings = [verify(name, data_dir) for name in _select_datasets(datasets, plugin)]
    show(findings_table(findings))
    for found in findings:
        if found.fingerprint and not (found.spec.sha256 or isinstance(found.spec.source, Generated)):
            echo(f'{found.spec.name}: to refuse other copies, declare sha256="{found.fingerprint}"')
    return 0 if not any(found.problem for found in findings) else FAILED


def _select_datasets(pattern: str, plugin: tuple[str, ...]) -> list[str]:
    from llpbench.data.suites import select_datasets

    load_plugins(plugin)
    return select_datasets(pattern)
