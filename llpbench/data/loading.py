"""Finding, reading, checking and caching of datasets.

A dataset is searched in this order: the data directory (argument or `LLPBENCH_DATA`), the user's cache, data embedded
in the package, the source. The cache is `LLPBENCH_CACHE`, or `XDG_CACHE_HOME/llpbench`, or `~/.cache/llpbench`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.core.errors import DataError
from llpbench.core.files import at_home, replaced
from llpbench.core.tables import Table
from llpbench.data.facts import BUILT_IN
from llpbench.data.frames import read_parquet
from llpbench.data.sources import Generated, Parquet, Source, UnreachableError
from llpbench.data.specs import LAST_COLUMN, DatasetSpec, dataset_spec, file_name

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


_tables: dict[tuple[object, ...], Table] = {}


def load_table(name: str, data_dir: str | Path | None = None, download: bool = True) -> Table:
    """Return the dataset called `name`, checked against its declaration. It stays in memory after the first call.

    Raises `DataError` if it is unavailable or differs from its declaration. Without `download`, it must be on this
    machine.
    """
    spec = dataset_spec(name)
    place = provide(spec, data_dir, download)
    stat = place.path.stat()
    key = (spec.name, spec.prepare, str(place.path), stat.st_mtime_ns, stat.st_size)
    if key not in _tables:
        _tables[key] = read_table(spec, place)
    return _tables[key]


def provide(spec: DatasetSpec, data_dir: str | Path | None = None, download: bool = True) -> Location:
    """Return the location of a dataset, downloaded if necessary. Raises `DataError` if it is unavailable."""
    place = locate(spec, data_dir)
    if place is not None:
        return place
    if not download or spec.remote is None:
        raise DataError(absence(spec))
    return Location("cache", _download_dataset(spec))


def find_local(name: str, data_dir: str | Path | None = None) -> Path | None:
    """Return the local file that `load_table` would read, or None if it would download."""
    place = locate(dataset_spec(name), data_dir)
    return None if place is None else place.path


def locate(spec: DatasetSpec, data_dir: str | Path | None = None) -> Location | None:
    """Return the first local location of a dataset. Raises `DataError` if the given data directory does not exist."""
    folder = data_directory(data_dir)
    places: list[Location] = []
    if folder is not None:
        places.append(Location("data-dir", folder / file_name(spec.name)))
        if spec.remote is not None and spec.remote.archive:
            places.append(Location("data-dir", folder / spec.remote.archive))
    if isinstance(spec.source, Parquet):
        places.append(Location("file", spec.source.within(spec.folder)))
    elif isinstance(spec.source, Generated):
        places.append(Location("generated", spec.folder))
    else:
        places.append(Location("cache", cache_path(spec.name)))
        places.append(Location("embedded", EMBEDDED / file_name(spec.name)))
    return next((place for place in places if place.path.exists()), None)


def data_directory(data_dir: str | Path | None = None) -> Path | None:
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
    return (Path(base) if base else Path.home() / ".cache") / "llpbench"


def cache_path(name: str) -> Path:
    """Return the path of the downloaded file of dataset `name`."""
    return cache_directory() / "datasets" / file_name(name)


def read_table(spec: DatasetSpec, place: Location) -> Table:
    """Return the checked table at a location. Raises `DataError`."""
    try:
        if place.kind == "generated" and isinstance(spec.source, Generated):
            raw = spec.source.make()
        elif place.path.suffix == ".parquet" or spec.remote is None:
            raw = read_parquet(place.path)
        else:
            raw = spec.remote.read(place.path)
        return spec.table(raw, repr(str(place.path)))
    except DataError as error:
        if place.kind != "cache":
            raise
        raise DataError(f"{error} Or delete {str(place.path)!r} to download it again.") from error


def _download_dataset(spec: DatasetSpec) -> Path:
    """Download, check and cache a dataset unless it is cached, and return the cached file.

    Processes take turns, and the file is written completely or not at all.
    """
    from filelock import FileLock

    assert spec.remote is not None
    path = cache_path(spec.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            if not path.exists():
                frame = spec.frame(_download(spec.remote, spec), spec.remote.describe())
                spec.tabulate(frame, spec.remote.describe())
                with replaced(path) as file:
                    frame.to_parquet(file, index=False, compression="zstd")
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def unwritable(path: Path, error: OSError) -> DataError:
    """Return the error for a file in the cache that cannot be written."""
    return DataError(
        f"the cache {str(path.parent)!r} cannot be written ({error.strerror or error}). "
        "Set LLPBENCH_CACHE to a folder that can."
    )


def _download(source: Source, spec: DatasetSpec) -> DataFrame:
    try:
        return source.download()
    except UnreachableError as error:
        file = file_name(spec.name) + (" (the target as its last column)" if spec.target == LAST_COLUMN else "")
        raise DataError(
            f"{error} Try again, or put {file} into a folder and name it: --data-dir DIR, or LLPBENCH_DATA=DIR."
        ) from error


def absence(spec: DatasetSpec) -> str:
    """Return the message for a dataset that cannot be found."""
    if isinstance(spec.source, Parquet):
        path = spec.source.within(spec.folder)
        return f"dataset {spec.name!r} has no file {str(path)!r}. Fix the path in its declaration."
    in_checkout = ", or to datasets/embedded of a checkout of llpbench" if spec.redistributable else ""
    fetch = (
        f"Fetch it from {spec.source.describe()} (llpbench data fetch {spec.name}), or point"
        if spec.source
        else "Point"
    )
    return (
        f"dataset {spec.name!r} is not on this machine. {fetch} --data-dir or LLPBENCH_DATA to a folder with "
        f"{file_name(spec.name)}{in_checkout}."
    )
