"""Where datasets are searched, which facts are checked, and which files stay in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import pytest

from llpbench.core.errors import DataError, LLPBenchError
from llpbench.core.registry import load_plugin
from llpbench.data import loading
from llpbench.data.loading import _cache_path, cache_directory, find_local, load_table
from llpbench.data.specs import Facts

pytestmark = pytest.mark.usefixtures("empty_cache")

Declare = Callable[..., None]
FACTS = {"target": "rich", "positive": "yes"}


@dataclass
class Shop:
    """A source that hands out a frame and counts how often."""

    frame: pd.DataFrame
    archive: str = ""
    visits: list[int] = field(default_factory=list)

    def describe(self) -> str:
        return "the shop"

    def read(self, path: Path) -> pd.DataFrame:
        return pd.read_csv(path)

    def download(self) -> pd.DataFrame:
        self.visits.append(1)
        return self.frame


def put(frame: pd.DataFrame, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path, index=False)
    return path


def test_data_dir_comes_before_environment_and_cache(
    people: pd.DataFrame, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(people)
    declare("people", source=shop, **FACTS)
    assert find_local("people") is None
    load_table("people")
    assert find_local("people") == _cache_path("people")
    named, given = put(people, tmp_path / "env" / "people.parquet"), put(people, tmp_path / "arg" / "people.parquet")
    monkeypatch.setenv("LLPBENCH_DATA", str(named.parent))
    assert find_local("people") == named
    assert find_local("people", given.parent) == given
    given.unlink()
    assert find_local("people", given.parent) == _cache_path("people")  # the argument takes the place of LLPBENCH_DATA
    assert len(shop.visits) == 1


def test_data_directory_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        with pytest.raises(DataError, match=f"{name}' .--data-dir. does not exist"):
            load_table("adult", tmp_path / name)
    monkeypatch.setenv("LLPBENCH_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match=r"absent' .LLPBENCH_DATA. does not exist"):
        load_table("adult")


def test_without_download_absence_says_what_to_do(people: pd.DataFrame, declare: Declare) -> None:
    declare("people", source=Shop(people), **FACTS)
    with pytest.raises(DataError, match=r"the shop .llpbench data fetch people.*--data-dir.* people.parquet"):
        load_table("people", download=False)
    declare("private", **FACTS)
    with pytest.raises(DataError, match=r"'private' is not on this machine.*private.parquet.$"):
        load_table("private")


def test_table_is_reloaded_only_after_file_changes(people: pd.DataFrame, declare: Declare, tmp_path: Path) -> None:
    declare("people", target="rich")
    path = put(people, tmp_path / "people.parquet")
    first = load_table("people", tmp_path)
    assert load_table("people", tmp_path) is first
    put(people.assign(age=1.0), path)
    os.utime(path, ns=(1, 1))
    assert (load_table("people", tmp_path).numeric[:, 0] == 1).all()


SIZE = Facts(60, ("age", "wage"), ("job", "town"), {"no": 40, "yes": 20})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"sha256": "0" * 64}, r"other values or another order of rows, sha256 \w{64} instead of 0{64}\. Point"),
        ({"sha256": "0" * 64, "facts": None}, r"is another table: sha256 \w{64} instead of 0{64}\. Point"),
        ({"facts": replace(SIZE, rows=61)}, "another table: rows 60 instead of 61"),
        ({"facts": replace(SIZE, numeric=("age", "pay"))}, r"numeric .*wage.* instead of .*pay"),
        ({"facts": replace(SIZE, categorical=("job",))}, r"categorical .*town.* instead of "),
        ({"facts": replace(SIZE, classes={"no": 39, "yes": 21})}, r"classes .*40.* instead of .*39"),
        ({"target": "poor"}, "no target column 'poor'"),
        ({"positive": "maybe"}, "'maybe' is not one of two classes of 'rich'"),
    ],
)
def test_copy_that_differs_from_declaration_is_refused(
    people: pd.DataFrame, declare: Declare, tmp_path: Path, facts: dict[str, object], message: str
) -> None:
    shop = Shop(people)
    declare("people", source=shop, **{**FACTS, "facts": SIZE, **facts})
    with pytest.raises(DataError, match=message):
        load_table("people")
    assert not _cache_path("people").exists()
    put(people, tmp_path / "people.parquet")
    with pytest.raises(DataError, match=message) as caught:
        load_table("people", tmp_path)
    assert "\n" not in str(caught.value)
    assert len(shop.visits) == 1


def test_download_is_cached_and_read_offline(
    people: pd.DataFrame, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached table has been prepared, and is prepared again when it is read."""
    shop = Shop(people.rename(columns={"rich": "V5"}))
    declare("people", lambda frame: frame.rename(columns={"V5": "rich"}), source=shop, **FACTS)
    first, path = load_table("people"), _cache_path("people")
    assert "rich" in pd.read_parquet(path).columns
    assert [each for each in path.parent.iterdir() if each.suffix != ".lock"] == [path]
    monkeypatch.setattr(loading, "_tables", {})
    assert load_table("people", download=False).fingerprint == first.fingerprint
    assert len(shop.visits) == 1


def test_failing_prepare_function_names_dataset(people: pd.DataFrame, declare: Declare, tmp_path: Path) -> None:
    declare("people", lambda frame: frame.drop(columns="salary"), target="rich")
    put(people, tmp_path / "people.parquet")
    with pytest.raises(DataError, match=r"'people' cannot be made from '.*people.parquet' \(KeyError: .*salary"):
        load_table("people", tmp_path)
    declare("forgetful", lambda _: None, target="rich")
    put(people, tmp_path / "forgetful.parquet")
    with pytest.raises(DataError, match="function of dataset 'forgetful' returned NoneType, not a data frame"):
        load_table("forgetful", tmp_path)


def test_unreadable_or_unwritable_cache_is_refused_with_remedy(
    people: pd.DataFrame, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare("people", source=Shop(people), **FACTS)
    path = put(people, _cache_path("people"))
    path.write_bytes(b"PAR1 cut off")
    with pytest.raises(DataError, match=r"cannot be read as parquet .*delete '.*people.parquet' to download it"):
        load_table("people")
    path.unlink()
    assert len(load_table("people")) == 60
    (tmp_path / "file").touch()
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match=r"cache '.*file/datasets' cannot be written .*Set LLPBENCH_CACHE"):
        load_table("people")


def test_cache_directory_follows_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("LLPBENCH_CACHE")
    assert cache_directory() == tmp_path / "xdg" / "llpbench"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == tmp_path / "home" / ".cache" / "llpbench"


DECLARATION = """
from llpbench.data.sources import Parquet
from llpbench.core.registry import register_dataset
register_dataset("people", source=Parquet("people.parquet"), target="rich")(lambda frame: frame)
"""


def test_relative_path_is_resolved_from_plugin_file(
    people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker process has another working directory than the shell the plugin was named in."""
    put(people, tmp_path / "plugin" / "data" / "people.parquet")
    plugin = tmp_path / "plugin" / "mine.py"
    plugin.write_text(DECLARATION.replace("people.parquet", "data/people.parquet"))
    monkeypatch.chdir(tmp_path)
    load_plugin(plugin)
    assert len(load_table("people")) == 60


def test_misspelt_or_missing_fact_is_refused(people: pd.DataFrame, declare: Declare) -> None:
    declare("people", source=Shop(people), target="rich", license="none")
    with pytest.raises(
        LLPBenchError, match=r"'people' .*people\.py.* declares the unknown argument 'license'. Did you mean licence"
    ):
        load_table("people")
    declare("others", source=Shop(people))
    with pytest.raises(LLPBenchError, match=r"'others' .* does not declare its 'target'"):
        load_table("others")


def test_two_processes_download_once(people: pd.DataFrame, tmp_path: Path) -> None:
    put(people, tmp_path / "source.parquet")
    code = f"""
import os, pathlib, time
import pandas as pd
from llpbench.core.registry import register_dataset
from llpbench.data.loading import load_table

class Slow:
    archive = ""
    def describe(self): return "a slow source"
    def download(self):
        pathlib.Path({str(tmp_path)!r}, f"visit-{{os.getpid()}}").touch()
        time.sleep(1.0)
        return pd.read_parquet({str(tmp_path / "source.parquet")!r})

@register_dataset("people", source=Slow(), target="rich")
def people(frame): return frame

pathlib.Path({str(tmp_path)!r}, f"ready-{{os.getpid()}}").touch()
while len(list(pathlib.Path({str(tmp_path)!r}).glob("ready-*"))) < 2:
    time.sleep(0.01)
assert len(load_table("people")) == 60
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    assert len(list(tmp_path.glob("visit-*"))) == 1
