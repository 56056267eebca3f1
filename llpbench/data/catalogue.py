"""The datasets and their locations, for `llpbench list datasets` and `llpbench data`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llpbench.core.errors import DataError
from llpbench.data.loading import Location, absence, download_dataset, locate, read_table
from llpbench.data.openml_ids import local_names
from llpbench.data.specs import balance_of, dataset_spec, dataset_specs


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """One dataset, as a line of a list. Counts are None if they are not declared."""

    name: str
    code: str
    summary: str
    rows: int | None
    numeric: int | None
    categorical: int | None
    classes: int | None
    licence: str
    redistributable: bool
    reference: str
    source: str
    """source in a few words; "" if the data must be in the data directory"""
    found: str
    """`data-dir`, `cache`, `embedded`, `file`, `to download` or `missing`"""
    path: Path | None
    """local file"""

    @property
    def features(self) -> int | None:
        """Number of features of both kinds."""
        return None if self.numeric is None or self.categorical is None else self.numeric + self.categorical


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results of `verify` for one dataset. After an early problem all fields except the name are empty."""

    name: str
    found: str = ""
    """`data-dir`, `cache`, `embedded` or `file`"""
    path: Path | None = None
    sha256: str = ""
    """hash of the file; "" for generated data"""
    fingerprint: str = ""
    """hash of the table, which is equal for files with equal data"""
    rows: int = 0
    numeric: int = 0
    categorical: int = 0
    balance: Mapping[str, int] | None = None
    problem: str = ""
    """problem in one line; "" if there is none"""

    @property
    def ok(self) -> bool:
        """Whether the dataset is present and matches its declaration."""
        return not self.problem


def catalogue(data_dir: str | Path | None = None) -> list[CatalogueEntry]:
    """Return every registered dataset, then the OpenML datasets on this machine, with their locations.

    Reads no data.
    """
    entries = []
    for spec in (*dataset_specs(), *map(dataset_spec, local_names(data_dir))):
        place = locate(spec, data_dir)
        entries.append(
            CatalogueEntry(
                name=spec.name,
                code=spec.code,
                summary=spec.summary,
                rows=spec.rows,
                numeric=spec.numeric,
                categorical=spec.categorical,
                classes=spec.classes,
                licence=spec.licence,
                redistributable=spec.redistributable,
                reference=spec.reference,
                source=spec.source.describe() if spec.source else "",
                found=place.kind if place else "to download" if spec.remote else "missing",
                path=place.path if place else None,
            )
        )
    return entries


def fetch(name: str, data_dir: str | Path | None = None) -> Location:
    """Download a dataset unless it is on this machine, and return its location. Raises `DataError` on failure."""
    spec = dataset_spec(name)
    place = locate(spec, data_dir)
    if place is not None:
        return place
    if spec.remote is None:
        raise DataError(absence(spec))
    return Location("cache", download_dataset(spec))


def verify(name: str, data_dir: str | Path | None = None) -> Findings:
    """Check the local copy of a dataset against its declaration, and return the findings. Downloads nothing.

    Faults of the data are findings. Only an unknown name or data directory raises `LLPBenchError`.
    """
    spec = dataset_spec(name)
    place = locate(spec, data_dir)
    if place is None:
        return Findings(name=spec.name, problem=absence(spec))
    sha256 = ""
    try:
        if place.kind != "generated":
            with place.path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        table = read_table(spec, place)
    except (DataError, OSError) as error:
        return Findings(name=spec.name, found=place.kind, path=place.path, sha256=sha256, problem=str(error))
    return Findings(
        name=spec.name,
        found=place.kind,
        path=place.path,
        sha256=sha256,
        fingerprint=table.fingerprint,
        rows=len(table),
        numeric=len(table.numeric_names),
        categorical=len(table.categorical_names),
        balance=None if table.labels is None else balance_of(table),
    )
