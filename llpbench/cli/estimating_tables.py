"""`llpbench estimate-table`: cells of a table of groups by outcomes, from the margins of precincts."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.cli.options import CROSS_TABLE, AnyPath, Command
from llpbench.cli.output import echo, percent, print_table
from llpbench.cli.reading_options import Formats, column_option, file_option, format_options, names_option
from llpbench.core.errors import LLPBenchError
from llpbench.core.text import plural


@click.command(
    cls=Command,
    groups=CROSS_TABLE,
    examples=(
        "llpbench estimate-table precincts.csv --groups black,white --outcomes ann,bob,abstained --out cells.csv",
        "llpbench estimate-table precincts.csv --groups black,white --outcomes ann,bob --rest-as abstained --out c.csv",
    ),
)
@click.argument("precincts", type=AnyPath(path_type=Path))
@names_option("--groups", required=True, help="Columns of people by group.")
@names_option("--outcomes", required=True, help="Columns of people by outcome.")
@file_option("--out", required=True, help="File of the cells: .csv or .parquet.")
@column_option("--rest-as", help="Outcome of all people who are in no column of --outcomes.")
@column_option("--precinct-column", help="Name of each precinct. [default: its line]")
@names_option("--covariates", help="Columns of numbers that may change outcomes.")
@names_option("--among", help="Give shares among these outcomes only. [default: all]")
@column_option("--size-column", help="Number of people, if the other columns have shares.")
@column_option("--weight-column", help="Weight of each precinct: how often it counts.")
@file_option("--differences", help="File of differences of groups, and how sure their signs are.")
@file_option("--plot", help="Plot of the cells of all precincts: .png, .svg or .pdf.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="Random seed.")
@format_options
def estimate_table(
    precincts: Path,
    groups: tuple[str, ...],
    outcomes: tuple[str, ...],
    out: Path,
    rest_as: str | None,
    precinct_column: str | None,
    size_column: str | None,
    weight_column: str | None,
    differences: Path | None,
    plot: Path | None,
    seed: int,
    covariates: tuple[str, ...],
    among: tuple[str, ...],
    formats: Formats,
) -> int:
    """Ecological inference: groups by outcomes, from precincts.

    PRECINCTS has a line for each precinct, with the number of people in each group and with each outcome, such as
    voters by race and votes by candidate. The file --out has the cells of all precincts together (precinct "all") and
    of each. They add up to both margins. Intervals are 95 %. Columns with _min and _max are the bounds of Duncan and
    Davis, and goodman is the regression of that name. --covariates names columns such as median income, whose effect
    on outcomes is the same for all groups; --differences shows by how much they shift the differences. With --among
    ann,bob, shares are of people who voted for one of these. All this assumes that shares of a group do not change
    systematically with a precinct's composition. A warning tests a part of it.
    """
    import pandas as pd

    from llpbench.owndata.cross_tables import NUMBERS, SHARES, cross_table
    from llpbench.owndata.group_estimates import ALL
    from llpbench.report.plots.layout import require_plot, save_figure
    from llpbench.report.plots.own_figures import cell_shares
    from llpbench.tables.bag_keys import bag_keys
    from llpbench.tables.column_names import column_of, csv_parts, split_names
    from llpbench.tables.number_text import as_numbers
    from llpbench.tables.row_files import RowBatches
    from llpbench.tables.writing import require_room, written

    for path, other in ((out, differences), (differences, out)):
        if path is not None:
            require_room(path, [precincts, other])
    if plot is not None:
        require_plot(plot, "--plot")
    wanted = [(part, text) for text in (*groups, *outcomes, *covariates) for part in csv_parts(text)]
    keys = [precinct_column] if precinct_column else []
    frame = RowBatches(precincts, keys=keys, form=formats.rows, columns=wanted).together()
    frame.index = pd.Index(bag_keys(frame, keys, precincts)[precinct_column] if keys else range(1, len(frame) + 1))
    if ALL in frame.index:
        raise LLPBenchError(f"a precinct must not be called {ALL!r}, which names all precincts. Rename it.")

    def numbers(*names: str) -> pd.DataFrame:
        """Return columns of numbers, which may be texts such as 1,456."""
        columns = (as_numbers(column_of(frame, name, precincts), decimal=formats.rows.decimal) for name in names)
        return pd.DataFrame(dict(zip(names, columns, strict=True)))

    people, votes, causes = (split_names(given, [*frame.columns]) for given in (groups, outcomes, covariates))
    table = cross_table(
        numbers(*people),
        numbers(*votes),
        sizes=numbers(size_column) if size_column else None,
        rest_as=rest_as,
        weights=numbers(weight_column) if weight_column else None,
        covariates=numbers(*causes) if causes else None,
        among=split_names(among, [*votes, *([rest_as] if rest_as else [])]),
        random_state=seed,
    )
    cells = pd.concat([table.cells.assign(precinct=ALL), table.by_precinct()], ignore_index=True)
    computed = (*NUMBERS, *SHARES, "goodman")
    with written(out, computed) as write:
        write(cells[["precinct", "group", "outcome", *computed]])
    if differences is not None:
        with written(differences, [*table.differences.columns[3:]]) as write:
            write(table.differences)
    if plot is not None:
        save_figure(lambda: cell_shares(table.cells), plot)
    texts = [*map(percent, *(table.cells[name] for name in ("share", *SHARES[1:3])))]
    by_group = table.cells.assign(text=texts).groupby("group", sort=False)
    print_table(
        ["group", "people", *table.shares],
        [[group, f"{lines['people'].iloc[0]:,.0f}", *lines["text"]] for group, lines in by_group],
        title="Outcomes by group",
        caption="Percent of each group, with 95 % intervals, if shares do not depend on the precinct's other groups.",
    )
    size = f"{plural(len(table.groups), 'group')} x {plural(len(table.outcomes), 'outcome')}"
    echo(f"{size}, {plural(len(frame), 'precinct')}: {plural(len(cells), 'line')} in {out}")
    return 0
