"""Messages between the driver and the Ray process, and the files that machines of a cluster need for jobs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from llpbench.core.cell import Environment
from llpbench.core.errors import LLPBenchError
from llpbench.core.files import private_root, replace_file
from llpbench.core.provenance import software
from llpbench.data.specs import file_name
from llpbench.running.executors import Message, Outcome
from llpbench.running.schedule import Job, RunCell

_SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
_MARGIN = 1.25
"""Factor on memory, since allocators fragment it."""
_UNKNOWN_MEGABYTES = 16_000.0
"""GPU memory reserved for a cell whose memory is unknown."""


class Room(NamedTuple):
    """Resources of a job or a machine."""

    cpus: float
    gpus: float = 0.0
    megabytes: float = 0.0
    """Main memory."""

    def holds(self, other: Room) -> bool:
        """Return whether these resources include those of `other`."""
        return all(amount >= needed for amount, needed in zip(self, other, strict=True))

    def without(self, other: Room) -> Room:
        """Return the resources that `other` leaves."""
        return Room(*(amount - used for amount, used in zip(self, other, strict=True)))

    @staticmethod
    def sum(rooms: Iterable[Room]) -> Room:
        """Return the sum of all resources."""
        return Room(*map(sum, zip(Room(0.0), *rooms, strict=True)))


@dataclass(frozen=True)
class Setup:
    """Arguments of the Ray process."""

    environment: Environment
    run: RunCell | None
    folder: Path
    """Working directory of the driver."""
    room: Room
    """Resources of a local Ray."""
    address: str | None = None
    """Address of an existing cluster; None to start Ray on this machine."""
    tables: Mapping[str, Path] = field(default_factory=dict)
    """Local files of datasets, by name."""

    def no_cluster(self, reason: str) -> LLPBenchError:
        """Return the error of a cluster that cannot be joined."""
        return LLPBenchError(
            f"no Ray cluster can be joined at {self.address!r} ({reason}). Start one with ray start --head, and run "
            "this command on one of its machines, with the token of the cluster if it has one (RAY_AUTH_MODE)."
        )


@dataclass(frozen=True)
class Nodes:
    """The machines that are available now. Sent when they change."""

    rooms: tuple[Room, ...]
    gpu_megabytes: float = 0.0
    """Memory of the smallest GPU; 0.0 if there is none or it is unknown."""

    @cached_property
    def total(self) -> Room:
        """Resources of all machines."""
        return Room.sum(self.rooms)

    @cached_property
    def most_cpus(self) -> float:
        """CPUs of the largest machine."""
        return max((room.cpus for room in self.rooms), default=0.0)

    def gpu_share(self, megabytes: float | None) -> float:
        """Return the share of a GPU that a job of this memory needs: 1/8, 1/4, 1/2 or 1. None is unknown memory."""
        share = (_UNKNOWN_MEGABYTES if megabytes is None else megabytes * _MARGIN) / self.gpu_megabytes
        return next((step for step in _SHARES if share <= step), 1.0)


class TrialRequest(NamedTuple):
    """A request for the job of a new trial. The driver answers with a `TrialJob`, "wait" or "finished"."""

    trial: str


class TrialJob(NamedTuple):
    """The job of a trial with its resources and limit."""

    job: Job
    room: Room
    timeout: float
    """Seconds."""


class Heard(NamedTuple):
    """The worker of a trial has started (None) or sent a message."""

    trial: str
    message: Message | None


class Finished(NamedTuple):
    """A trial has ended."""

    trial: str
    outcome: Outcome


class Broken(NamedTuple):
    """Ray cannot be used."""

    reason: str


@dataclass(frozen=True)
class NodeFiles:
    """Files for machines that share no folder with the driver."""

    name: str
    """Name of the folder for the files."""
    software: Mapping[str, Any]
    """Software of the driver. Machines with other software are rejected."""
    plugins: Mapping[str, bytes]
    """Content of plugins, by path on the driver's machine."""
    tables: Mapping[str, tuple[str, int, Any]]
    """Path and size on the driver's machine and reference to the content, by name of the dataset."""

    @property
    def folder(self) -> Path:
        """Folder for the files on this machine."""
        return private_root() / self.name

    def unpack(self, environment: Environment, dataset: str, fetch: Callable[[Any], bytes]) -> Environment:
        """Write the files that this machine lacks, once, and return the environment with their paths.

        `fetch` returns the content of a reference. Raises `LLPBenchError` if this machine has other software.
        """
        _require_software(self.software)
        environment = replace(
            environment,
            plugins=tuple(map(self._plugin, environment.plugins)),
            pretrained=self._shared_or_local(environment.pretrained),
            tuning=self._shared_or_local(environment.tuning),
        )
        if dataset in self.tables:
            path, size, content = self.tables[dataset]
            if os.path.exists(path) and os.path.getsize(path) == size:
                return environment
            name = file_name(dataset)
            file = self._path(f"data-{Path(name).stem}", name if path.endswith(".parquet") else path)
            if not file.exists():
                replace_file(file, fetch(content))
            return replace(environment, data_dir=str(file.parent))
        if environment.data_dir is not None and not Path(environment.data_dir).is_dir():
            return replace(environment, data_dir=None)
        return environment

    def _shared_or_local(self, folder: str | None) -> str | None:
        """Return the driver's folder if this machine shares it, otherwise a local one."""
        return folder if folder is None or Path(folder).parent.is_dir() else str(self.folder / Path(folder).name)

    def _plugin(self, path: str) -> str:
        content = self.plugins[path]
        if Path(path).is_file() and Path(path).read_bytes() == content:
            return path
        file = self._path(f"plugin-{hashlib.sha256(content).hexdigest()[:16]}", path)
        if not file.exists():
            replace_file(file, content)
        return str(file)

    def _path(self, folder: str, path: str) -> Path:
        place = self.folder / folder
        for each in (self.folder, place):
            each.mkdir(mode=0o700, exist_ok=True)
        return place / Path(path).name


def _require_software(required: Mapping[str, Any]) -> None:
    """Raise `LLPBenchError` if this machine has other software."""
    installed = software()
    for name in installed.keys() | required.keys():
        if installed.get(name) != required.get(name):
            raise LLPBenchError(
                f"machine {os.uname().nodename!r} must have {name} {required.get(name)} like the machine that "
                f"started this run, got {installed.get(name)}. Install the same version on every machine."
            )
