"""The datasets and their locations, for `llpbench list datasets` and `llpbench data`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llpbench.core.errors import DataError
from llpbench.data.loading import Location, local_names, locate
from llpbench.data.specs import DatasetSpec, dataset_spec, dataset_specs


@dataclass(frozen=True)
class CatalogueEntry:
    """A dataset and its location."""

    spec: DatasetSpec
    location: Location | None
    """None if it is not on this machine"""

    @property
    def found(self) -> str:
        """The kind of its location, `to download` or `missing`."""
        return self.location.kind if self.location else "to download" if self.spec.remote else "missing"

    @property
    def source(self) -> str:
        """Its source in a few words; "" if the data must be in the data directory."""
        return self.spec.source.describe() if self.spec.source else ""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results of `verify` for one dataset."""

    spec: DatasetSpec
    location: Location | None
    fingerprint: str = ""
    """`Table.fingerprint`, which is equal for files with equal data; "" if there is a problem"""
    problem: str = ""
    """problem in one line; "" if there is none"""

    @property
    def check(self) -> str:
        """`ok`, `other table` (see `DatasetSpec.source_may_differ`) or `problem`."""
        if self.problem:
            return "problem"
        return "ok" if self.spec.sha256 in ("", self.fingerprint) else "other table"


def catalogue(data_dir: str | Path | None = None) -> list[CatalogueEntry]:
    """Return every registered dataset, then the OpenML datasets on this machine, with their locations.

    Reads no data.
    """
    specs = (*dataset_specs(), *map(dataset_spec, local_names(data_dir)))
    return [CatalogueEntry(spec, locate(spec, data_dir)) for spec in specs]


def verify(name: str, data_dir: str | Path | None = None) -> Findings:
    """Check the local copy of a dataset against its declaration, and return the findings. Downloads nothing.

    Faults of the data are findings. Only an unknown name or data directory raises `LLPBenchError`.
    """
    spec = dataset_spec(name)
    location = locate(spec, data_dir)
    if location is None:
        return Findings(spec=spec, location=None, problem=spec.absence)
    try:
        table = location.read(spec)
    except (DataError, OSError) as error:
        return Findings(spec=spec, location=location, problem=str(error))
    return Findings(spec=spec, location=location, fingerprint=table.fingerprint)
