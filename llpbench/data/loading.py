"""Finding, reading, checking, caching and listing of datasets and suites.

A dataset is searched in this order: the data directory (argument or `LLPBENCH_DATA`), the user's cache, data embedded
in the package, the source. The cache is `LLPBENCH_CACHE`, or `XDG_CACHE_HOME/llpbench`, or `~/.cache/llpbench`.

Of undeclared datasets (`openml:ID`, and those of an OpenML suite, `openml-suite:ID`), OpenML declares the target, and
which columns are categories, identifiers or ignored. The cached file has the target as its last column. The attributes
of its frame have OpenML's other facts.

A suite (`--datasets suite:NAME`) is a function that returns names of datasets, as in `datasets/built_in_suites.py`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import at_home, replace_file, replaced
from llpbench.core.registry import DATASETS, OPENML, OPENML_SUITE, SUITE, SUITES, Entry
from llpbench.core.tables import Table
from llpbench.core.text import one_line
from llpbench.data.frames import is_numeric, read_parquet, table_from_frame
from llpbench.data.sources import Generated, OpenML, Parquet, Source, UnreachableError, openml_suite_members
from llpbench.data.specs import BUILT_IN, LAST_COLUMN, DatasetSpec, Facts, dataset_spec, file_name

if TYPE_CHECKING:
    from pandas import DataFrame

EMBEDDED = BUILT_IN / "embedded"


@dataclass(frozen=True)
class Location:
    """Location of a dataset."""

    kind: str
    """`data-dir`, `cache`, `embedded`, `file` or `generated`

    `file` is a `Parquet` source. The path of `generated` is the folder of the file that generates the data.
    """
    path: Path

    def read(self, spec: DatasetSpec) -> Table:
        """Return the checked table of a dataset. Raises `DataError`."""
        try:
            if self.kind == "generated" and isinstance(spec.source, Generated):
                raw = spec.source.make()
            else:
                raw = read_parquet(self.path)
            origin = repr(str(self.path))
            return spec.tabulate(spec.frame(raw, origin), origin)
        except DataError as error:
            if self.kind != "cache":
                raise
            raise DataError(f"{error} Or delete {str(self.path)!r} to download it again.") from error


_tables: dict[tuple[object, ...], Table] = {}


def load_table(name: str, data_dir: str | Path | None = None, download: bool = True) -> Table:
    """Return the dataset called `name`, checked against its declaration. It stays in memory after the first call.

    Raises `DataError` if it is unavailable or differs from its declaration. Without `download`, it must be on this
    machine.
    """
    spec = dataset_spec(name)
    place = provide(spec, data_dir, download)
    files = [place.path, *([spec.bags.within(spec.folder)] if isinstance(spec.bags, Parquet) else [])]
    stats = [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists()]
    key = (spec.name, spec.prepare, *stats)
    if key not in _tables:
        _tables[key] = place.read(spec)
    return _tables[key]


def provide(spec: DatasetSpec, data_dir: str | Path | None = None, download: bool = True) -> Location:
    """Return the location of a dataset, downloaded if necessary. Raises `DataError` if it is unavailable."""
    if (place := locate(spec, data_dir)) is not None:
        return place
    if not download or spec.remote is None:
        raise DataError(spec.absence)
    return Location("cache", _download(spec.remote, spec))


def locate(spec: DatasetSpec, data_dir: str | Path | None = None) -> Location | None:
    """Return the first local location of a dataset. Raises `DataError` if the given data directory does not exist."""
    places: list[Location] = []
    if (folder := _data_directory(data_dir)) is not None:
        places.append(Location("data-dir", folder / file_name(spec.name)))
    if isinstance(spec.source, Parquet):
        places.append(Location("file", spec.source.within(spec.folder)))
    elif isinstance(spec.source, Generated):
        places.append(Location("generated", spec.folder))
    else:
        places.append(Location("cache", _cache_path(spec.name)))
        places.append(Location("embedded", EMBEDDED / file_name(spec.name)))
    return next((place for place in places if place.path.exists()), None)


def _data_directory(data_dir: str | Path | None = None) -> Path | None:
    """Return `data_dir`, or the folder in `LLPBENCH_DATA`, or None. Raises `DataError` if it is not a directory."""
    given = data_dir or os.environ.get("LLPBENCH_DATA")
    if not given:
        return None
    folder = at_home(given)
    if not folder.is_dir():
        origin = "--data-dir" if data_dir else "LLPBENCH_DATA"
        raise DataError(f"data directory {str(folder)!r} ({origin}) does not exist. Create it or name another.")
    return folder


def cache_directory() -> Path:
    """Return the folder of downloads, which need not exist yet."""
    if folder := os.environ.get("LLPBENCH_CACHE"):
        return at_home(folder)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else at_home("~/.cache")) / "llpbench"


def _cache_path(name: str) -> Path:
    return cache_directory() / "datasets" / file_name(name)


def _download(source: Source, spec: DatasetSpec) -> Path:
    """Download, check and cache a dataset unless it is cached, and return the cached file.

    Processes take turns, and the file is written completely or not at all.
    """
    from filelock import FileLock

    path = _cache_path(spec.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                frame = spec.frame(source.download(), source.describe())
                spec.tabulate(frame, source.describe())
                with replaced(path) as file:
                    frame.to_parquet(file, index=False, compression="zstd")
    except UnreachableError as error:
        last = " (the target as its last column)" if spec.target == LAST_COLUMN else ""
        raise DataError(
            f"{error} Try again, or put {file_name(spec.name)}{last} into a folder and name it: --data-dir DIR, or "
            "LLPBENCH_DATA=DIR."
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return path


def _unwritable(path: Path, error: OSError) -> DataError:
    told = f"the cache {str(path.parent)!r} cannot be written ({error.strerror or error})"
    return DataError(f"{told}. Set LLPBENCH_CACHE to a folder that can.")


@dataclass(frozen=True)
class _OpenMLById(OpenML):
    """A dataset of OpenML with its default target, types and missing values."""

    def download(self) -> DataFrame:
        """Return the features in OpenML's order, then the target.

        Raises `DataError` on failure, and unless there is a single default target that holds classes.
        """
        dataset, frame = self.ask()
        target, what = dataset.default_target_attribute, self.describe()
        remedy = "Declare it in a file with classes of your choice, for --plugin."
        if not target:
            raise DataError(f"{what} has no default target. {remedy}")
        if target not in frame.columns:
            columns = one_line(", ".join(map(str, frame.columns)))
            raise DataError(f"{what} has the default target {target!r}, but the columns {columns}. {remedy}")
        if is_numeric(frame[target], what):
            raise DataError(f"{what} has the default target {target!r}, which is numeric. {remedy}")
        frame = frame[[*(column for column in frame.columns if column != target), target]]
        table = table_from_frame(frame, name=f"{OPENML}{self.id}", target=target)
        frame.attrs = {
            "summary": one_line(f"{dataset.name}, version {dataset.version}, target {target}"),
            "licence": one_line(dataset.licence or "not stated"),
            "facts": asdict(Facts.of(table)),
        }
        return frame


def openml_by_id(name: str) -> Entry | None:
    """Return the entry of `openml:NUMBER`, with rows, features and classes if it is on this machine.

    Returns None for other names. Raises `LLPBenchError` if `NUMBER` is not a number.
    """
    if not name.startswith(OPENML):
        return None
    ident = _ident(OPENML, name.removeprefix(OPENML).strip())
    name = f"{OPENML}{ident}"
    files = (path for path in _files(name) if path.is_file())
    stated = next((_stated(path, path.stat().st_mtime_ns, path.stat().st_size) for path in files), {})
    facts = {"target": LAST_COLUMN, "source": _OpenMLById(ident), **stated}
    return Entry("dataset", name, str(facts.pop("summary", name)), facts, __file__, __name__, _as_downloaded)


def _as_downloaded(frame: DataFrame) -> DataFrame:
    return frame


def local_names(data_dir: str | Path | None = None) -> list[str]:
    """Return `openml:ID` for every OpenML dataset in the data directory or the cache, in the order of IDs."""
    folders = {path.parent for path in _files(OPENML, data_dir)}
    matches = (re.fullmatch(r"openml-([1-9]\d*)", path.stem) for folder in folders for path in folder.glob("*.parquet"))
    return [f"{OPENML}{ident}" for ident in sorted({int(match[1]) for match in matches if match})]


def _openml_suite(number: str) -> Iterator[str]:
    """Return `openml:ID` for each dataset of a suite, in the order of IDs. The list is downloaded once and cached.

    Raises `DataError` if OpenML does not answer and no list is cached.
    """
    ident = _ident(OPENML_SUITE, number)
    path = cache_directory() / "suites" / f"openml-{ident}.json"
    try:
        members = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        members = openml_suite_members(ident)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, json.dumps(members))
        except OSError as error:
            raise _unwritable(path, error) from error
    return (f"{OPENML}{member}" for member in members)


def _ident(prefix: str, number: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", number):
        raise LLPBenchError(f"{prefix}ID must end in the number that OpenML has given, got {prefix + number!r}.")
    return int(number)


def _files(name: str, data_dir: str | Path | None = None) -> list[Path]:
    """Return the possible files of a dataset, in the order of look-up."""
    folder, cached = _data_directory(data_dir), _cache_path(name)
    return [cached] if folder is None else [folder / file_name(name), cached]


@lru_cache(maxsize=256)
def _stated(path: Path, modified: int, size: int) -> Mapping[str, Any]:
    """Return the declaration in a file's attributes; empty if another program wrote the file, or if it is damaged."""
    del modified, size
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        attributes = json.loads((pq.read_schema(path).metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
        stated = {name: str(attributes[name]) for name in ("summary", "licence")}
        return {**stated, "facts": Facts.read(attributes["facts"])}
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError):
        return {}


def suite_datasets(name: str) -> tuple[str, ...]:
    """Return the names of the datasets of a suite, in its order.

    Raises `LLPBenchError` for an unknown suite (with the nearest names), an empty suite, and a suite with an unknown
    dataset.
    """
    entry = SUITES.entry(name)
    named = entry.load()()
    if isinstance(named, str) or not named:
        told = f"suite {entry.name!r} ({entry.where}) must return names of datasets, got {named!r}"
        raise LLPBenchError(f"{told}. Return a tuple.")
    try:
        return tuple(dict.fromkeys(DATASETS.entry(each).name for each in named))
    except LLPBenchError as error:
        raise LLPBenchError(f"suite {entry.name!r} ({entry.where}): {error}") from error


def select_datasets(pattern: str) -> list[str]:
    """Return the names in a pattern: `all`, a comma-separated list, globs, `suite:NAME` or `openml-suite:ID`."""
    return DATASETS.select(expanded(pattern))


def expanded(pattern: str) -> Iterator[str]:
    """Return the parts of a comma-separated list, with suites replaced by their datasets."""
    for part in map(str.strip, pattern.split(",")):
        if part.startswith(SUITE):
            yield from suite_datasets(part.removeprefix(SUITE).strip())
        elif part.startswith(OPENML_SUITE):
            yield from _openml_suite(part.removeprefix(OPENML_SUITE).strip())
        else:
            yield part
