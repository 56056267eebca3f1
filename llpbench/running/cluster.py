"""Messages between the driver and Ray's process, and files that a machine of a cluster needs for jobs."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from llpbench.core.cell import Environment, Epoch
from llpbench.core.errors import LLPBenchError
from llpbench.core.provenance import content_hash, software_facts
from llpbench.core.version import __version__
from llpbench.data.specs import file_name
from llpbench.running.executors import Outcome, RunCell
from llpbench.running.schedule import Job


class Room(NamedTuple):
    """Resources of a job or a machine."""

    cpus: float
    gpus: float = 0.0
    megabytes: float = 0.0
    """of main memory"""

    def holds(self, other: Room) -> bool:
        """Whether another has room in this one."""
        return all(mine >= its for mine, its in zip(self, other, strict=True))

    def without(self, other: Room) -> Room:
        """Return what is left after another."""
        return Room(*(mine - its for mine, its in zip(self, other, strict=True)))

    @staticmethod
    def sum(rooms: Any) -> Room:
        """All together."""
        return Room(*map(sum, zip(Room(0.0), *rooms, strict=True)))


@dataclass(frozen=True)
class Setup:
    """Arguments of Ray's process."""

    environment: Environment
    run: RunCell | None
    folder: Path
    """the driver's"""
    room: Room
    """what a Ray of our own offers"""
    address: str | None = None
    """of a cluster that is there; None: a Ray of our own is started on this machine"""
    tables: Mapping[str, Path] = field(default_factory=dict)
    """by name, the local files of datasets"""


class Alive(NamedTuple):
    """A sign of life: Ray's process runs, and Ray knows of a machine that does."""


class TrialRequest(NamedTuple):
    """A request for the job of a trial of Tune's. The answer is a `TrialJob`, "wait" or "finished"."""

    trial: str


class TrialJob(NamedTuple):
    """A job, and what it is given."""

    job: Job
    room: Room
    timeout: float
    """seconds"""
    until: float
    """when the time budget is over, as `time.time` counts"""


@dataclass(frozen=True)
class Nodes:
    """The machines that there are now."""

    rooms: tuple[Room, ...]
    gpu_megabytes: float = 0.0
    """memory of the smallest GPU, 0.0 if there is none or it is unknown"""

    @cached_property
    def total(self) -> Room:
        """All together."""
        return Room.sum(self.rooms)

    @cached_property
    def most_cpus(self) -> float:
        """CPUs of the largest machine."""
        return max((each.cpus for each in self.rooms), default=0.0)

    @cached_property
    def least_megabytes(self) -> float:
        """Main memory of the smallest machine; 0.0 if unknown."""
        return min((each.megabytes for each in self.rooms if each.megabytes), default=0.0)


class Started(NamedTuple):
    """A trial has a process."""

    trial: str


class Progressed(NamedTuple):
    """An epoch of a trial is over."""

    trial: str
    epoch: Epoch


class Finished(NamedTuple):
    """A trial is over."""

    trial: str
    outcome: Outcome


class Broken(NamedTuple):
    """The run cannot go on, and why."""

    reason: str


@dataclass(frozen=True)
class NodeFiles:
    """Files for a machine that shares no folder with the driver."""

    name: str
    """of the folder in which it is unpacked"""
    software: Mapping[str, Any]
    """of the driver: a machine with other software is refused"""
    plugins: Mapping[str, bytes]
    """by path on the driver's machine"""
    tables: Mapping[str, tuple[str, int, Any]]
    """by name of a dataset: path and size of its file on the driver's machine, and what gives `fetch` its content"""

    @property
    def folder(self) -> Path:
        """On this machine."""
        return Path(tempfile.gettempdir()) / self.name

    def unpack(self, environment: Environment, dataset: str, fetch: Any) -> Environment:
        """The environment as it is on this machine: what it lacks of the driver's files is unpacked, once.

        Raises `LLPBenchError` if this machine has other software than the driver.
        """
        self._require_software()
        plugins = tuple(self._plugin(path) for path in environment.plugins)
        environment = replace(environment, plugins=plugins)
        if dataset in self.tables:
            path, size, content = self.tables[dataset]
            if not (os.path.exists(path) and os.path.getsize(path) == size):
                own = file_name(dataset)
                place = self._place(f"data-{Path(own).stem}", own if path.endswith(".parquet") else path)
                _write_once(place, lambda: fetch(content))
                environment = replace(environment, data_dir=str(place.parent))
        elif environment.data_dir is not None and not Path(environment.data_dir).is_dir():
            environment = replace(environment, data_dir=None)
        return replace(
            environment, pretrained=self._kept(environment.pretrained), tuning=self._kept(environment.tuning)
        )

    def _kept(self, path: str | None) -> str | None:
        """Folder of intermediate results: the driver's if it is shared, otherwise a local one."""
        return path if path is None or Path(path).parent.is_dir() else str(self.folder / Path(path).name)

    def _plugin(self, path: str) -> str:
        text = self.plugins[path]
        if Path(path).is_file() and Path(path).read_bytes() == text:
            return path
        place = self._place(f"plugin-{hashlib.sha256(text).hexdigest()[:16]}", path)
        _write_once(place, lambda: text)
        return str(place)

    def _place(self, folder: str, path: str) -> Path:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return self.folder / folder / Path(path).name

    def _require_software(self) -> None:
        own = software()
        for name in own.keys() | self.software.keys():
            if own.get(name) != self.software.get(name):
                raise LLPBenchError(
                    f"machine {os.uname().nodename!r} must have {name} {self.software.get(name)} like the machine that "
                    f"started this run, got {own.get(name)}. Install the same version on every machine."
                )


@cache
def software() -> Mapping[str, Any]:
    """Installed software that results depend on: libraries, and llpbench by the content of its files."""
    found = {name: version for name, version in software_facts()["libraries"].items() if name != "python"}
    return {**found, "llpbench": f"{__version__} ({content_hash()})"}


def _write_once(place: Path, content: Any) -> None:
    """A file that appears whole; others may write the same."""
    if place.exists():
        return
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.{os.getpid()}.tmp")
    part.write_bytes(content())
    os.replace(part, place)
