"""Published results: the journal in one shard per dataset, and one table of its runs that ships with the package.

`leaderboards/journal/DATASET.jsonl.xz` holds the lines of a dataset's runs and searches, as in a journal. New results
of a dataset rewrite only its shard. `leaderboards/published.parquet` is made from the shards. `compare`, `plan` and
`load_results("published")` read it: one row per run and board criterion, without what `OMITTED` names.
"""

from __future__ import annotations

import json
import lzma
import re
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from llpbench.core.criteria import BOARD_CRITERIA, METRICS
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.record import SCHEMA, Record, TuningRecord
from llpbench.core.text import one_line
from llpbench.results.journal import SHARD_SUFFIX, SHARDS, Contents, agree, to_line
from llpbench.results.schema import as_part_of_run, as_run, as_tuning

if TYPE_CHECKING:
    import pyarrow as pa

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
TABLE = "published.parquet"
"""Name of the table beside the folder of shards."""

OMITTED = (
    "learning curves, diagnostics, reliability bins, proportion histograms and criteria without a board; "
    "the shards in leaderboards/journal/ of the repository have them"
)
"""Description for readers of what the table leaves out."""

_SHARED = ("spec", "method", "dataset", "bags", "data", "versions", "restamped", "code", "libraries", "hardware")
"""Fields that many runs have in common; each is one column of JSON."""
_PLAIN = ("status", "reason", "finished")
_COUNTS = ("seed", "epochs", "parameters", "members", "numerics")
_COMPRESSION_LEVEL = 19
_MOST_ROWS = 10**6
"""Largest number of rows that is read. The largest table so far has a fiftieth of it."""


def write_published(folder: Path, records: Sequence[Record], tunings: Sequence[TuningRecord]) -> None:
    """Write the shards of these records, and the table of those that count. Unchanged shards are not rewritten.

    `records` may hold several of one run, the newest last; the run is in the table if they agree. Raises `OSError`.
    """
    lines: dict[str, list[bytes]] = defaultdict(list)
    for record in records:
        lines[record["spec"]["dataset"]].append(to_line(record))
    for tuning in tunings:
        lines[tuning["spec"]["cell"]["dataset"]].append(to_line(tuning))
    for name in lines:
        if not _FILE_NAME.fullmatch(name):
            raise LLPBenchError(f"a published dataset must have a name such as bank_marketing, got {name!r}.")
    (folder / SHARDS).mkdir(parents=True, exist_ok=True)
    for dataset, content in lines.items():
        path = folder / SHARDS / f"{dataset}{SHARD_SUFFIX}"
        new = b"".join(content)
        if not path.exists() or lzma.decompress(path.read_bytes()) != new:
            replace_file(path, lzma.compress(new, preset=9 | lzma.PRESET_EXTREME))
    runs: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        runs[record["run"]].append(record)
    _write_table([found[-1] for found in runs.values() if agree(found)], tunings, folder / TABLE)


def read_table(path: Path, *, fields: Collection[str] | None = None) -> Contents:
    """Return the runs and searches of a published table, without what is `OMITTED`.

    With `fields`, runs have only these fields and their names, no results, and searches are left out: twice as
    fast. Raises `LLPBenchError` if the file cannot be read, or a value is not one of a run.
    """
    try:
        return _contents(path, fields)
    except Exception as error:  # a damaged file can have any content
        raise LLPBenchError(
            f"published results {str(path)!r} cannot be read: {one_line(error)}. Reinstall llpbench."
        ) from error


def _contents(path: Path, fields: Collection[str] | None) -> Contents:
    import pyarrow as pa
    from pyarrow import parquet

    file = parquet.ParquetFile(path)  # `read_table` would import pandas
    if file.metadata.num_rows > _MOST_ROWS:
        raise ValueError(f"it has {file.metadata.num_rows:,} rows, more than {_MOST_ROWS:,}")
    names = file.schema_arrow.names
    if fields is not None:
        names = [name for name in names if name.split()[0].replace("seconds", "times") in ("cell", "seed", *fields)]
    table = file.read(columns=names)
    if fields is not None:  # a row per run instead of one per criterion
        rows = enumerate(zip(table.column("cell").to_pylist(), table.column("seed").to_pylist(), strict=True))
        first = {run: place for place, run in reversed([*rows]) if run[0] is not None}
        places = array("q", sorted(first.values()))
        # made from a list, an array of pyarrow would import pandas
        table = table.take(pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)]))
    columns = _columns(table)
    nothing = [None] * len(table)
    metrics = [(name, columns[name]) for name in METRICS if name in columns]
    times = [(name.removeprefix("seconds "), columns[name]) for name in columns if name.startswith("seconds ")]
    records: dict[str, Record] = {}
    tunings: dict[str, TuningRecord] = {}
    others = (columns.get(name, nothing) for name in ("criterion", "tuning"))
    for place, (cell, seed, criterion, tuning) in enumerate(
        zip(columns["cell"], columns["seed"], *others, strict=True)
    ):
        if tuning is not None:
            tunings[tuning["tuning"]] = as_tuning(tuning)
            continue
        run = f"{cell}-{seed}"
        if run not in records:
            records[run] = _record(columns, times, place, run)
        if criterion is not None:
            records[run]["results"][criterion] = {
                "epoch": columns["epoch"][place],
                "validation": _known(columns["validation"][place]),
                "diagnostics": {},
                "test": {name: _known(value) for name, values in metrics if (value := values[place]) is not None},
            }
    for record in records.values():
        if fields is None:
            as_run(cast(dict[str, Any], record))
        else:
            as_part_of_run(record, fields)
    return Contents(records, tunings)


def _known(value: float | None) -> float | None:
    """Return None for NaN, which marks an undefined metric in the table."""
    return None if value is None or value != value else value


def _record(
    columns: Mapping[str, Sequence[Any]], times: Sequence[tuple[str, Sequence[Any]]], place: int, run: str
) -> Record:
    """Return a run without results, in the order in which runs write their fields (`run_lines.py`)."""

    def known(*names: str) -> dict[str, Any]:
        return {name: columns[name][place] for name in names if name in columns}

    record = {
        "schema": SCHEMA,
        "run": run,
        **known("cell", "seed", "spec", "status", "reason"),
        "results": {},
        "curves": {},
        **known("epochs", "parameters"),
        "times": {name: value for name, values in times if (value := values[place]) is not None},
        **known("memory_mb", "members", "data", "bags", "finished", "method", "dataset", "versions", "numerics"),
        **known("code", "libraries", "hardware", "restamped"),
    }
    return cast(Record, {name: value for name, value in record.items() if name not in _SHARED or value is not None})


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    """Return the columns of a table by name. JSON shared by many rows is decoded once, into one shared object."""
    columns: dict[str, list[Any]] = {}
    for name in table.column_names:
        column = table.column(name)
        if name in (*_SHARED, "tuning"):
            encoded = column.combine_chunks().dictionary_encode()
            values = [json.loads(text) for text in encoded.dictionary.to_pylist()]
            columns[name] = [None if place is None else values[place] for place in encoded.indices.to_pylist()]
        else:
            columns[name] = column.to_pylist()
    return columns


def _write_table(records: Iterable[Record], tunings: Iterable[TuningRecord], path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [row for record in records for row in _rows(record)]
    rows += [{"tuning": to_line(tuning).decode().strip()} for tuning in tunings]
    times = sorted({name for row in rows for name in row if name.startswith("seconds ")})
    kinds: dict[str, pa.DataType] = {
        "cell": pa.string(),
        **dict.fromkeys(_COUNTS, pa.int64()),
        **dict.fromkeys(_PLAIN, pa.string()),
        **dict.fromkeys(_SHARED, pa.string()),
        "memory_mb": pa.float32(),
        **dict.fromkeys(times, pa.float32()),
        "criterion": pa.string(),
        "epoch": pa.int32(),
        "validation": pa.float32(),
        **dict.fromkeys(METRICS, pa.float32()),
        "tuning": pa.string(),
    }
    schema = pa.schema(list(kinds.items()))
    sink = pa.BufferOutputStream()
    parquet.write_table(
        pa.Table.from_pylist(rows, schema=schema),
        sink,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        use_dictionary=True,
        row_group_size=1 << 20,
    )
    replace_file(path, sink.getvalue().to_pybytes())


def _rows(record: Record) -> Iterator[dict[str, Any]]:
    bags = {name: value for name, value in record["bags"].items() if name != "histograms"}
    if bags:
        bags["histograms"] = []
    shared = {name: _text(bags if name == "bags" else record.get(name)) for name in _SHARED}
    run = {
        "cell": record["cell"],
        **{name: record.get(name) for name in (*_COUNTS, *_PLAIN)},
        **shared,
        "memory_mb": record["memory_mb"],
        **{f"seconds {name}": value for name, value in record["times"].items()},
    }
    chosen = [name for name in BOARD_CRITERIA if name in record["results"]]
    if not chosen:
        yield run
    for name in chosen:
        result = record["results"][name]
        test = {key: float("nan") if value is None else value for key, value in result["test"].items()}
        yield {**run, "criterion": name, "epoch": result["epoch"], "validation": _nan(result["validation"]), **test}


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
