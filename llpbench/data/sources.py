"""Where datasets come from. A source gives the raw frame; the dataset's own function makes features and target of it.

Everything that goes wrong on the way is one line that says what to do: users cannot fix the network from here.
"""

from __future__ import annotations

import contextlib
import csv
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from llpbench.core.errors import DataError
from llpbench.core.files import at_home

if TYPE_CHECKING:
    from zipfile import ZipFile

    from pandas import DataFrame

ATTEMPTS = 3
"""to reach OpenML, one and two seconds apart"""

GROUPLENS = "https://files.grouplens.org/datasets/movielens"


class Source(Protocol):
    """A place on the network that holds a dataset."""

    @property
    def archive(self) -> str:
        """Name of the source's own file, which may stand in the data directory instead; "" if there is none."""

    def describe(self) -> str:
        """The source in a few words, for lists and messages."""

    def read(self, path: Path) -> DataFrame:
        """The raw frame in a local copy of `archive`."""

    def download(self) -> DataFrame:
        """The raw frame. Raises `DataError` if it cannot be had."""


@dataclass(frozen=True)
class Parquet:
    """Your own parquet file. A relative path starts at the folder of the file that registers the dataset."""

    path: str | Path

    def describe(self) -> str:
        """The file's path."""
        return f"file {self.path}"

    def within(self, folder: Path) -> Path:
        """The file, seen from the folder of the file that registers the dataset."""
        return folder / at_home(self.path)


@dataclass(frozen=True)
class Generated:
    """What a function makes: the same at every call."""

    make: Callable[[], DataFrame]

    def describe(self) -> str:
        """As in a list."""
        return "generated"


@dataclass(frozen=True)
class OpenML:
    """A dataset of openml.org, by its id; through the `openml` package and whichever server that is set to."""

    id: int

    @property
    def archive(self) -> str:
        """None: what OpenML hands out is not a file that one would place in the data directory."""
        return ""

    def describe(self) -> str:
        """As in a list."""
        return f"OpenML {self.id}"

    def read(self, path: Path) -> DataFrame:
        """Never called, as there is no archive."""
        raise NotImplementedError(path)

    def download(self) -> DataFrame:
        """The frame of all columns, target included, in OpenML's order of rows."""
        return self.ask()[1]

    def ask(self) -> tuple[Any, DataFrame]:
        """The client's description of the dataset, and the frame. Raises `DataError` if they cannot be had."""
        with openml_client() as openml:
            try:
                # Without these two flags the client deletes its own cache when the network fails half-way.
                dataset = openml.datasets.get_dataset(
                    self.id, download_data=True, download_qualities=False, download_features_meta_data=False
                )
                if "sparse" in str(dataset.format).lower():  # of which the client makes no frame with categories
                    raise DataError(f"{self.describe()} is a sparse matrix, which is not supported. Choose a table.")
                return dataset, dataset.get_data()[0]
            except DataError:
                raise
            except Exception as error:  # the client lets through what requests, xmltodict, liac-arff and os raise
                raise DataError(_unreachable(self.describe(), error)) from error


@dataclass(frozen=True)
class GroupLens:
    """A MovieLens archive of grouplens.org, as `ml-1m.zip`: its ratings joined with users and movies."""

    archive: str
    server: str = GROUPLENS

    def describe(self) -> str:
        """As in a list."""
        return f"GroupLens {self.archive}"

    def read(self, path: Path) -> DataFrame:
        """One row a rating. Raises `DataError` if the archive is truncated or another one."""
        import zipfile

        try:
            with zipfile.ZipFile(path) as archive:
                ratings = _read_dat(archive, "ratings.dat", ["userId", "movieId", "rating", "timestamp"])
                users = _read_dat(archive, "users.dat", ["userId", "gender", "age", "occupation", "zip"])
                movies = _read_dat(archive, "movies.dat", ["movieId", "title", "genres"])
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError) as error:
            raise DataError(f"{str(path)!r} is not a whole {self.archive} ({_one_line(error)}). Replace it.") from error
        return ratings.merge(users, on="userId", how="left").merge(movies, on="movieId", how="left")

    def download(self) -> DataFrame:
        """As `read`, of a temporary copy."""
        import http.client
        import urllib.request

        url = f"{self.server}/{self.archive}"
        with tempfile.TemporaryDirectory(prefix="llpbench-") as folder:
            path = Path(folder) / self.archive
            try:
                with urllib.request.urlopen(url, timeout=60) as response:
                    path.write_bytes(response.read())
            except (OSError, http.client.HTTPException) as error:
                raise DataError(_unreachable(self.describe(), error)) from error
            return self.read(path)


@contextlib.contextmanager
def openml_client() -> Iterator[Any]:
    """The `openml` package, quiet, with a cache that lives as long as the `with` block.

    Its own cache is not for us: it holds pickles of whatever pandas wrote them and is not safe for two processes.
    """
    with _quiet(), tempfile.TemporaryDirectory(prefix="llpbench-") as folder:
        try:
            import openml
        except Exception as error:  # on import it also writes to the home directory, which may fail in any way
            raise DataError(
                f"the package openml, which downloads, cannot be imported ({_one_line(error)}). "
                "Install it (pip install openml), or point --data-dir or LLPBENCH_DATA to local copies."
            ) from error
        before = openml.config.get_config_as_dict()
        skip = os.environ.get("OPENML_SKIP_PARQUET")
        openml.config.set_root_cache_directory(folder)
        openml.config.connection_n_retries = min(before["connection_n_retries"], ATTEMPTS)
        # ARFF, not parquet: its checksum is verified, and one format means one set of types and one fingerprint.
        os.environ["OPENML_SKIP_PARQUET"] = "true"
        try:
            yield openml
        finally:
            openml.config.set_root_cache_directory(before["cachedir"])
            openml.config.connection_n_retries = before["connection_n_retries"]
            os.environ.pop("OPENML_SKIP_PARQUET")
            if skip is not None:
                os.environ["OPENML_SKIP_PARQUET"] = skip


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings and log lines of other packages."""
    root = logging.getLogger()
    silence = logging.NullHandler()
    level = root.manager.disable
    root.addHandler(silence)  # else the client's logging.warning() would give the process a handler for good
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        root.removeHandler(silence)


def _read_dat(archive: ZipFile, name: str, columns: list[str]) -> DataFrame:
    """A `::`-separated member of a MovieLens archive, in whichever folder it stands."""
    import io

    import pandas as pd

    members = [member for member in archive.namelist() if Path(member).name == name]
    if not members:
        raise ValueError(f"it holds no {name}")
    text = archive.read(members[0]).decode("latin-1").replace("::", "\x1f")  # one character, for pandas' fast reader
    return pd.read_csv(
        io.StringIO(text), sep="\x1f", names=columns, dtype={"zip": str}, quoting=csv.QUOTE_NONE, keep_default_na=False
    )


def _unreachable(what: str, error: Exception) -> str:
    return (
        f"{what} cannot be downloaded ({_one_line(error)}). "
        "Try again, or point --data-dir or LLPBENCH_DATA to a folder with a local copy."
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
