"""Undeclared datasets of OpenML: `openml:ID`, and the datasets of an OpenML suite, `openml-suite:ID`.

OpenML declares the target, and which columns are categories, identifiers or ignored. The cached file has the target as
its last column. The attributes of its frame have OpenML's other facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.files import replace_file
from llpbench.core.registry import OPENML, OPENML_SUITE
from llpbench.core.text import one_line, printable
from llpbench.data.facts import Facts
from llpbench.data.frames import is_numeric, table_from_frame
from llpbench.data.loading import cache_directory, cache_path, data_directory, unwritable
from llpbench.data.sources import OpenML, openml_client, require_connection
from llpbench.data.specs import LAST_COLUMN, file_name

if TYPE_CHECKING:
    from pandas import DataFrame

_STATED = ("summary", "licence")
"""what OpenML states about a dataset, in the attributes of a cached frame, beside `facts` of its table"""


@dataclass(frozen=True)
class _OpenMLById(OpenML):
    """A dataset of OpenML with its default target, types and missing values."""

    def download(self) -> DataFrame:
        """Return the features in OpenML's order, then the target. Raises `DataError` on failure or without classes."""
        dataset, frame = self.ask()
        target = self._target(dataset.default_target_attribute, frame)
        frame = frame[[*(column for column in frame.columns if column != target), target]]
        table = table_from_frame(frame, name=f"{OPENML}{self.id}", target=target)
        frame.attrs = {
            "summary": printable(f"{one_line(dataset.name)}, version {dataset.version}, target {target}"),
            "licence": printable(one_line(dataset.licence or "not stated")),
            "facts": asdict(Facts.of(table)),
        }
        return frame

    def _target(self, target: str | None, frame: DataFrame) -> str:
        """Return the default target. Raises `DataError` if there are none or several, or if it is absent or numeric."""
        what, remedy = self.describe(), "Declare it in a file with classes of your choice, for --plugin."
        if not target:
            raise DataError(f"{what} has no default target. {remedy}")
        if target not in frame.columns:
            columns = one_line(", ".join(map(str, frame.columns)))
            raise DataError(f"{what} has the default target {target!r}, but the columns {columns}. {remedy}")
        if is_numeric(frame[target], what):
            raise DataError(f"{what} has the default target {target!r}, which is numeric. {remedy}")
        return target


def declared(number: str) -> Mapping[str, Any]:
    """Return the declaration of `openml:NUMBER`, with rows, features and classes if it is on this machine.

    Raises `LLPBenchError` if `number` is not a number.
    """
    ident = _ident(OPENML, number)
    name = f"{OPENML}{ident}"
    facts = {"name": name, "summary": name, "target": LAST_COLUMN, "source": _OpenMLById(ident)}
    for path in _files(name):
        if path.is_file():
            stat = path.stat()
            return {**facts, **_stated(path, stat.st_mtime_ns, stat.st_size)}
    return facts


def local_names(data_dir: str | Path | None = None) -> list[str]:
    """Return `openml:ID` for every OpenML dataset in the data directory or the cache, in the order of IDs."""
    folders = {path.parent for path in _files(OPENML, data_dir)}
    matches = (re.fullmatch(r"openml-([1-9]\d*)", path.stem) for folder in folders for path in folder.glob("*.parquet"))
    return [f"{OPENML}{ident}" for ident in sorted({int(match[1]) for match in matches if match})]


def openml_suite(number: str) -> Iterator[str]:
    """Return `openml:ID` for each dataset of a suite, in the order of IDs. The list is downloaded once and cached.

    Raises `DataError` if OpenML does not answer and no list is cached.
    """
    ident = _ident(OPENML_SUITE, number)
    path = cache_directory() / "suites" / f"openml-{ident}.json"
    try:
        members = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        members = _ask_members(ident)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, json.dumps(members))
        except OSError as error:
            raise unwritable(path, error) from error
    return (f"{OPENML}{member}" for member in members)


def _ask_members(ident: int) -> list[int]:
    with openml_client() as openml:
        try:
            require_connection(openml.config.server)
            members = openml.study.get_suite(ident).data
        except Exception as error:  # errors of any kind, as with datasets
            raise DataError(
                f"OpenML suite {ident} cannot be read ({one_line(error, 200)}). "
                f"Try again, or name its datasets: --datasets {OPENML}ID,{OPENML}ID."
            ) from error
    if not members:
        raise DataError(f"OpenML suite {ident} has no datasets. Choose another one.")
    return sorted(set(members))


def _ident(prefix: str, number: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", number):
        raise LLPBenchError(f"{prefix}ID must end in the number that OpenML has given, got {prefix + number!r}.")
    return int(number)


def _files(name: str, data_dir: str | Path | None = None) -> list[Path]:
    """Return the possible files of a dataset, in the order of look-up."""
    folder = data_directory(data_dir)
    return [*([folder / file_name(name)] if folder is not None else []), cache_path(name)]


@lru_cache(maxsize=256)
def _stated(path: Path, modified: int, size: int) -> Mapping[str, Any]:
    """Return the declaration in a file's attributes; empty if another program wrote the file, or if it is damaged."""
    del modified, size
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        attributes = json.loads((pq.read_schema(path).metadata or {}).get(b"PANDAS_ATTRS", b"{}"))
        stated = {name: str(attributes[name]) for name in _STATED}
        return {**stated, "facts": Facts.read(attributes["facts"])}
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError):
        return {}
