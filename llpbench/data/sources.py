"""Sources of datasets. A source gives the raw frame; the dataset's own function turns it into features and target.

Every failure is one line with advice: users cannot fix the network from here.
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
"""attempts to reach OpenML, one and two seconds apart"""

GROUPLENS = "https://files.grouplens.org/datasets/movielens"


class Source(Protocol):
    """A dataset's location on the network."""

    @property
    def archive(self) -> str:
        """Name of the source's file, which may be in the data directory instead; "" if there is none."""

    def describe(self) -> str:
        """Return the source in a few words, for lists and messages."""

    def read(self, path: Path) -> DataFrame:
        """Return the raw frame in a local copy of `archive`."""

    def download(self) -> DataFrame:
        """Return the raw frame. Raises `DataError` if it is unavailable."""


@dataclass(frozen=True)
class Parquet:
    """Your own parquet file. A relative path starts in the folder of the file that registers the dataset."""

    path: str | Path

    def describe(self) -> str:
        """Return the file's path with the word "file"."""
        return f"file {self.path}"

    def within(self, folder: Path) -> Path:
        """Return the file's path, relative to the folder of the file that registers the dataset."""
        return folder / at_home(self.path)


@dataclass(frozen=True)
class Generated:
    """Data made by a function, the same at every call."""

    make: Callable[[], DataFrame]

    def describe(self) -> str:
        """Return the source in a word, for lists."""
        return "generated"


@dataclass(frozen=True)
class OpenML:
    """A dataset of openml.org, by id; downloaded with the `openml` package from its configured server."""

    id: int

    @property
    def archive(self) -> str:
        """Always "": OpenML provides no file to put into the data directory."""
        return ""

    def describe(self) -> str:
        """Return the source in a few words, for lists."""
        return f"OpenML {self.id}"

    def read(self, path: Path) -> DataFrame:
        """Raise `NotImplementedError`; never called, since there is no archive."""
        raise NotImplementedError(path)

    def download(self) -> DataFrame:
        """Return the frame of all columns, including the target, in OpenML's order of rows."""
        return self.ask()[1]

    def ask(self) -> tuple[Any, DataFrame]:
        """Return the client's description of the dataset, and the frame. Raises `DataError` if they are unavailable."""
        with openml_client() as openml:
            try:
                # Without these two flags the client deletes its own cache if the network fails half-way.
                dataset = openml.datasets.get_dataset(
                    self.id, download_data=True, download_qualities=False, download_features_meta_data=False
                )
                if "sparse" in str(dataset.format).lower():  # the client's frame would lack categories
                    raise DataError(f"{self.describe()} is a sparse matrix, which is not supported. Choose a table.")
                return dataset, dataset.get_data()[0]
            except DataError:
                raise
            except Exception as error:  # the client passes on errors of requests, xmltodict, liac-arff and os
                raise DataError(_unreachable(self.describe(), error)) from error


@dataclass(frozen=True)
class GroupLens:
    """A MovieLens archive of grouplens.org, such as `ml-1m.zip`: ratings joined with users and movies."""

    archive: str
    server: str = GROUPLENS

    def describe(self) -> str:
        """Return the source in a few words, for lists."""
        return f"GroupLens {self.archive}"

    def read(self, path: Path) -> DataFrame:
        """Return one row per rating. Raises `DataError` if the archive is truncated or another file."""
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
        """Return the same frame as `read`, from a temporary copy."""
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
    """Yield the `openml` package without its warnings, with a cache that lives as long as the `with` block.

    Its own cache is unsuitable: its pickles depend on the version of pandas, and two processes cannot share it safely.
    """
    with _quiet(), tempfile.TemporaryDirectory(prefix="llpbench-") as folder:
        try:
            import openml
        except Exception as error:  # its import also writes to the home directory, which may fail in any way
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
    """Silence warnings and log lines of other packages."""
    root = logging.getLogger()
    silence = logging.NullHandler()
    level = root.manager.disable
    root.addHandler(silence)  # otherwise the client's logging.warning() would add a permanent handler to the process
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        root.removeHandler(silence)


def _read_dat(archive: ZipFile, name: str, columns: list[str]) -> DataFrame:
    """Return a `::`-separated member of a MovieLens archive, in any folder of it."""
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
