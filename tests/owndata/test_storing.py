"""A model in a folder: the same predictions after loading, and one clear line for anything else."""

from __future__ import annotations

import errno
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench import as_they_were, refusal
from districts import counted, people, reloaded

from llpbench import LLPClassifier
from llpbench.core.registry import load_plugin
from llpbench.owndata import storing

TREES = {"trees": 100}
FAST: dict[str, dict[str, Any]] = {
    "bag-gp-gbdt": {"trees": 200, "rounds": 2},
    "bag-gp": {"draws": 0, "most_pairs": 50},
    "em-gbdt": {"start": "soft-labels", "rounds": 1, "trees": 50},
    "bag-mean-linear": {},
    "bag-soft-label-linear": {"model": "logistic"},
    "dllp": {"hidden": 64},
    "llp-gan": {},
}
FRAME, BAGS, VOTES = people(200, 10)


def fitted(method: str, classes: int = 2) -> LLPClassifier:
    frame, bags, votes = people(200, 300 if method == "bag-gp-gbdt" else 10, classes=classes)
    model = LLPClassifier(method, params=FAST.get(method, TREES), epochs=2)
    return model.fit(frame, bags, counts=counted(bags, votes))


@pytest.mark.parametrize(
    ("method", "classes"), [*((name, 2) for name in FAST), ("bag-gp", 3), ("bag-soft-label-linear", 3)]
)
def test_loaded_model_predicts_same(method: str, classes: int, tmp_path: Path) -> None:
    model = fitted(method, classes)
    found = reloaded(model, tmp_path)
    new, bags, _ = people(100, 12, seed=1)
    for of_rows in (None, bags):
        assert np.array_equal(found.predict_proba(new, of_rows), model.predict_proba(new, of_rows))
    assert np.array_equal(found.predict(new), model.predict(new))
    for fact in ("left_out_", "doubts_", "bags_", "feature_names_in_", "distinct_rows_"):
        assert np.array_equal(getattr(found, fact), getattr(model, fact))
    assert (found.get_params(), found.doubts_ is not None) == (model.get_params(), method == "bag-gp-gbdt")
    for mine, other in zip(model.effects(), found.effects(), strict=True) if method == "bag-gp" else ():
        assert mine.name == other.name
        assert np.array_equal([mine.values, mine.std], [other.values, other.std])


def test_loaded_model_keeps_ensemble_classes_and_keys(tmp_path: Path) -> None:
    keys = pd.DataFrame({"state": "s", "place": BAGS})
    share = pd.Series(VOTES).groupby([keys["state"], keys["place"]]).mean()
    model = LLPClassifier("count-gbdt", params=TREES, ensemble=2)
    model.fit(FRAME, keys, proportions=share, classes=["no", "yes"]).save(tmp_path)
    found = LLPClassifier.load(str(tmp_path))
    assert (found.bags_[0], *found.classes_) == (("s", "d00"), "no", "yes")
    assert np.array_equal(found.disaggregate(FRAME, keys), model.disaggregate(FRAME, keys))
    assert np.array_equal(found.assign(FRAME, keys), model.assign(FRAME, keys))
    assert np.array_equal(reloaded(found, tmp_path / "again").predict(FRAME), model.predict(FRAME))  # once more


def test_saved_model_has_no_row(tmp_path: Path) -> None:
    """As many numbers for twenty times as many rows."""
    sizes, model = [], LLPClassifier("bag-gp", params=FAST["bag-gp"])
    for copies in (1, 20):
        model.fit(pd.concat([FRAME] * copies), np.tile(BAGS, copies), counts=counted(BAGS, VOTES) * copies)
        model.save(tmp_path)
        sizes.append((tmp_path / storing.FILE).stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]


def test_what_cannot_be_stored_is_named(tmp_path: Path) -> None:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta([int(bag[1:]) for bag in BAGS], "D")
    dated = LLPClassifier("bag-mean-linear").fit(FRAME, days, counts=counted(days, VOTES))
    for model, told in (
        (fitted("bag-soft-label-gbdt"), "'bag-soft-label-gbdt' cannot be saved"),
        (dated, r"contains .*Timestamp.* Use texts or numbers as labels"),
    ):
        with refusal(told):
            model.save(tmp_path)
        assert list(tmp_path.iterdir()) == []


FUNCTION = '''
"""A method that returns a function."""
from llpbench import DirectMethod, register_method

@register_method("lambda", reference="Doe 2026")
class Lambda(DirectMethod):
    """The same for all rows."""
    def fit(self, train, schema, rng):
        return lambda rows: train.prior + 0 * rows.missing[:, :1]
'''


def test_author_of_function_is_told_to_return_object(tmp_path: Path) -> None:
    (plugin := tmp_path / "returns_function.py").write_text(FUNCTION)
    with as_they_were():
        load_plugin(plugin)
        with refusal(r"returns_function\.py.* __call__") as error:
            LLPClassifier("lambda").fit(FRAME, BAGS, counts=counted(BAGS, VOTES)).save(tmp_path / "model")
    assert "labels of bags" not in str(error.value)
    assert not (tmp_path / "model").exists()


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """A folder with a model of count-gbdt, for a test to change."""
    return Path(shutil.copytree(files / "fitted", tmp_path / "model"))


def altered(folder: Path, change: Callable[[Any], Any], part: str = "schema.json") -> None:
    """Change a file of the archive, as somebody would who knows its format."""
    with zipfile.ZipFile(folder / storing.FILE) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[part] = json.dumps(change(json.loads(files[part]))).encode()
    with zipfile.ZipFile(folder / storing.FILE, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def renamed(folder: Path, old: str, new: str) -> None:
    altered(folder, lambda schema: json.loads(json.dumps(schema).replace(old, new)))


def forged(folder: Path, **node: Any) -> None:
    """Replace the model by a node that a forger wrote."""
    altered(folder, lambda schema: schema | {"content": schema["content"] | {"model": {"__id__": 1, **node}}})


def cut(folder: Path, *, end: int, flipped: int = 0) -> None:
    """Cut the file, and change a bit in its middle."""
    data = bytearray((folder / storing.FILE).read_bytes())
    data[len(data) // 2] ^= flipped
    (folder / storing.FILE).write_bytes(data[:end])


def bomb(folder: Path) -> None:
    """Add a file that says it has 2 GB unpacked."""
    with zipfile.ZipFile(folder / storing.FILE, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", b"0")
        archive.getinfo("bomb").file_size = 2 * 10**9


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda folder: (folder / storing.FILE).unlink(), "has no model.skops"),
        (partial(cut, end=-100), "damaged"),
        (partial(cut, end=10**9, flipped=1), "Fit it again"),
        (bomb, "unpacks from"),
        (partial(altered, part=storing.HEADER, change=lambda head: head | {"format": 99}), "another format"),
        (partial(altered, part=storing.HEADER, change=lambda head: head | {"source": "0"}), "other code of 'count-gb"),
        (partial(altered, part=storing.HEADER, change=lambda head: head | {"method": "absent"}), "needs method 'abs"),
        (partial(renamed, old="llpbench.blocks.trees", new="os"), r"os\._TreeInput"),
        (partial(renamed, old='"_TreeInput"', new='"xgboost"'), r"trees\.xgboost"),
        (partial(renamed, old='"_TreeInput"', new='"_Old"'), "by another version .*_Old"),
        (partial(renamed, old='"deviation"', new='"other"'), "not a fitted model"),
        (partial(forged, __loader__="Absent"), "cannot be read"),
    ],
)
def test_damaged_or_forged_model_gives_one_clear_line(harm: Callable[[Path], None], told: str, folder: Path) -> None:
    harm(folder)
    with refusal(told):
        LLPClassifier.load(folder)


@pytest.mark.parametrize(("module", "name"), [("os", "mkdir"), ("llpbench.core.files", "replace_file")])
def test_forged_model_calls_no_function(module: str, name: str, folder: Path) -> None:
    """A call of a function with a path, as skops stores calls of constructors."""
    path = json.dumps(str(folder / "new"))
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": path}
    arguments = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [text, text]}
    forged(folder, __class__=name, __module__=module, __loader__="ConstructorFromReduceNode", content=arguments)
    with refusal(rf"{module}\.{name}"):
        LLPClassifier.load(folder)
    assert [file.name for file in folder.iterdir()] == [storing.FILE]


def test_full_disk_keeps_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (folder / ".model.skops.1.tmp").write_bytes(b"{")  # of a save that was killed
    model, before = LLPClassifier.load(folder), (folder / storing.FILE).read_bytes()
    monkeypatch.setattr(storing, "replace_file", full)
    with refusal("No space left"):
        model.save(folder)
    assert (folder / storing.FILE).read_bytes() == before


@pytest.mark.parametrize("name", ["model.json", "letter.txt"])
def test_folder_with_other_files_is_refused(name: str, files: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("text")
    with refusal(re.escape(str(tmp_path))):
        LLPClassifier.load(files / "fitted").save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]


PLUGIN = '''
import numpy as np
from llpbench import DirectMethod, register_method

class Shares:
    def __init__(self, *facts):
        self.prior, self.schema, self.params = facts

    def __call__(self, rows):
        return np.tile(self.prior, (len(rows.numeric), 1)) * (self.schema.classes == 2)

@register_method("nearer", reference="Doe 2026")
class Nearer(DirectMethod):
    """The overall shares."""

    def fit(self, train, schema, rng):
        return Shares(train.prior, schema, self.params)
'''


def test_plugin_model_needs_its_file(tmp_path: Path) -> None:
    (tmp_path / "nearer.py").write_text(PLUGIN)
    with as_they_were():
        load_plugin(tmp_path / "nearer.py")
        model = LLPClassifier("nearer").fit(FRAME, BAGS, counts=counted(BAGS, VOTES))
        found = [reloaded(model, tmp_path / "model")]
    with refusal(r"needs method 'nearer' .*--plugin FILE\.py"):
        LLPClassifier.load(tmp_path / "model")
    load_plugin(tmp_path / "nearer.py")
    for loaded in (*found, LLPClassifier.load(tmp_path / "model")):
        assert np.array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))
