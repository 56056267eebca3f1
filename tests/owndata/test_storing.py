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
from districts import counted, people

from llpbench import LLPClassifier
from llpbench.core.errors import LLPBenchError
from llpbench.core.registry import METHODS, load_plugin
from llpbench.owndata import storing

FAST: dict[str, dict[str, Any]] = {
    "bag-gp-gbdt": {"trees": 200, "rounds": 2},
    "bag-gp": {"draws": 0, "most_pairs": 50},
    "em-gbdt": {"start": "soft-labels", "rounds": 1, "trees": 50},
    "bag-mean-linear": {},
    "bag-soft-label-linear": {"model": "logistic"},
    "dllp": {"hidden": 64},
    "llp-gan": {},
}


TREES = {"trees": 100}


def fitted(method: str, classes: int = 2, **settings: Any) -> LLPClassifier:
    frame, bags, votes = people(200, 300 if method == "bag-gp-gbdt" else 10, classes=classes)
    model = LLPClassifier(method, params=FAST.get(method, TREES), epochs=2, **settings)
    return model.fit(frame, bags, counts=counted(bags, votes))


@pytest.mark.parametrize(
    ("method", "classes"), [*((name, 2) for name in FAST), ("bag-gp", 3), ("bag-soft-label-linear", 3)]
)
def test_loaded_model_predicts_same(method: str, classes: int, tmp_path: Path) -> None:
    model = fitted(method, classes)
    model.save(tmp_path / "model")
    found = LLPClassifier.load(tmp_path / "model")
    new, bags, _ = people(100, 12, seed=1)
    assert np.array_equal(found.predict_proba(new), model.predict_proba(new))
    assert np.array_equal(found.predict_proba(new, bags), model.predict_proba(new, bags))
    assert np.array_equal(found.predict(new), model.predict(new))
    assert found.get_params() == model.get_params()
    assert found.left_out_ == model.left_out_ == {"rows": 0, "bags": 0, "suppressed": 0, "impossible": 0}
    assert found.doubts_ == model.doubts_
    assert (found.doubts_ is not None) == (method == "bag-gp-gbdt")
    assert found.bags_.tolist() == model.bags_.tolist()
    assert list(found.feature_names_in_) == list(model.feature_names_in_)
    if method == "bag-gp":
        for mine, other in zip(model.effects(), found.effects(), strict=True):
            assert mine.name == other.name
            assert np.array_equal(mine.values, other.values)
            assert np.array_equal(mine.std, other.std)


def test_loaded_model_keeps_ensemble_classes_and_keys(tmp_path: Path) -> None:
    frame, bags, votes = people(200, 10)
    keys = pd.DataFrame({"state": "s", "place": bags})
    share = pd.Series(votes).groupby([keys["state"], keys["place"]]).mean()
    model = LLPClassifier("count-gbdt", params=TREES, ensemble=2)
    model.fit(frame, keys, proportions=share, classes=["no", "yes"]).save(tmp_path)
    found = LLPClassifier.load(str(tmp_path))
    assert found.bags_[0] == ("s", "d00")
    assert found.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(found.disaggregate(frame, keys), model.disaggregate(frame, keys))
    assert np.array_equal(found.assign(frame, keys), model.assign(frame, keys))
    found.save(tmp_path / "again")  # and once more
    assert np.array_equal(LLPClassifier.load(tmp_path / "again").predict(frame), model.predict(frame))


def test_saved_model_has_no_row(tmp_path: Path) -> None:
    """As many numbers for a hundred times as many rows."""
    sizes = []
    for copies in (1, 20):
        frame, bags, votes = people(200, 10)
        repeated = pd.concat([frame] * copies)
        model = LLPClassifier("bag-gp", params=FAST["bag-gp"])
        model.fit(repeated, np.tile(bags, copies), counts=counted(bags, votes) * copies).save(tmp_path / str(copies))
        sizes.append((tmp_path / str(copies) / storing.FILE).stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]


def test_unsaveable_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LLPBenchError, match="'bag-soft-label-gbdt' cannot be saved"):
        fitted("bag-soft-label-gbdt").save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    fitted("count-gbdt").save(folder)
    return folder


def rewritten(folder: Path, **parts: Callable[[Any], Any]) -> None:
    """Change files of the archive, as somebody would who knows its format."""
    with zipfile.ZipFile(folder / storing.FILE) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, change in parts.items():
        file = {"header": storing.HEADER, "schema": "schema.json"}[name]
        files[file] = json.dumps(change(json.loads(files[file]))).encode()
    with zipfile.ZipFile(folder / storing.FILE, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def replaced(schema: Any, old: str, new: str) -> Any:
    text = json.dumps(schema)
    assert old in text
    return json.loads(text.replace(old, new))


def with_node(schema: Any, **node: Any) -> Any:
    """Replace the model by a node that a forger wrote."""
    schema["content"]["model"] = {"__id__": 1, **node}
    return schema


def called(path: Path, module: str, name: str) -> Callable[[Any], Any]:
    """A call of a function with a path, as skops stores calls of constructors."""
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(str(path))}
    arguments = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [text, text]}
    loader = "ConstructorFromReduceNode"
    return partial(with_node, __class__=name, __module__=module, __loader__=loader, content=arguments)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def bomb(folder: Path) -> None:
    """Add a file that says it has 2 GB unpacked."""
    with zipfile.ZipFile(folder / storing.FILE, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", b"0")
        archive.getinfo("bomb").file_size = 2 * 10**9


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda f: (f / storing.FILE).unlink(), "has no model.skops"),
        (lambda f: (f / storing.FILE).write_bytes((f / storing.FILE).read_bytes()[:-100]), "damaged"),
        (lambda f: flip(f / storing.FILE), "Fit it again"),
        (bomb, "unpacks from"),
        (lambda f: rewritten(f, header=lambda h: h | {"format": 99}), "another format"),
        (lambda f: rewritten(f, header=lambda h: h | {"source": "0"}), "other code of 'count-gbdt'"),
        (lambda f: rewritten(f, header=lambda h: h | {"method": "absent"}), "needs method 'absent'"),
        (lambda f: rewritten(f, schema=lambda s: replaced(s, "llpbench.blocks.trees", "os")), r"os\._TreeInput"),
        (lambda f: rewritten(f, schema=lambda s: replaced(s, '"_TreeInput"', '"xgboost"')), r"trees\.xgboost"),
        (lambda f: rewritten(f, schema=lambda s: replaced(s, '"_TreeInput"', '"_Old"')), "by another version .*_Old"),
        (lambda f: rewritten(f, schema=lambda s: replaced(s, '"deviation"', '"other"')), "not a fitted model"),
        (lambda f: rewritten(f, schema=lambda s: with_node(s, __loader__="Absent")), "cannot be read"),
    ],
)
def test_damaged_or_forged_model_gives_one_clear_line(
    harm: Callable[[Path], None], told: str, saved: Path, tmp_path: Path
) -> None:
    shutil.copytree(saved, folder := tmp_path / "model")
    harm(folder)
    with pytest.raises(LLPBenchError, match=told) as error:
        LLPClassifier.load(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("module", "name"), [("os", "mkdir"), ("llpbench.core.files", "replace_file")])
def test_forged_model_calls_no_function(module: str, name: str, saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, folder := tmp_path / "model")
    (tmp_path / "made").touch()
    before = sorted(tmp_path.iterdir())
    rewritten(folder, schema=called(tmp_path / "new", module, name))
    with pytest.raises(LLPBenchError, match=rf"{module}\.{name}"):
        LLPClassifier.load(folder)
    assert sorted(tmp_path.iterdir()) == before


def test_full_disk_keeps_the_old_model(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    shutil.copytree(saved, folder := tmp_path / "model")
    (folder / ".model.skops.1.tmp").write_bytes(b"{")  # of a save that was killed
    model, before = LLPClassifier.load(folder), (folder / storing.FILE).read_bytes()
    monkeypatch.setattr(storing, "replace_file", full)
    with pytest.raises(LLPBenchError, match="No space left"):
        model.save(folder)
    assert (folder / storing.FILE).read_bytes() == before


@pytest.mark.parametrize("name", ["model.json", "letter.txt"])
def test_folder_with_other_files_is_refused(name: str, saved: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("text")
    with pytest.raises(LLPBenchError, match=re.escape(str(tmp_path))):
        LLPClassifier.load(saved).save(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_date_bag_labels_cannot_be_saved(tmp_path: Path) -> None:
    frame, bags, votes = people(200, 10)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta([int(bag[1:]) for bag in bags], "D")
    model = LLPClassifier("bag-mean-linear").fit(frame, days, counts=counted(days, votes))
    with pytest.raises(LLPBenchError, match=r"contains .*Timestamp.* Use texts or numbers as labels"):
        model.save(tmp_path / "dates")


PLUGIN = '''
import numpy as np
from llpbench import DirectMethod, register_method


@register_method("nearer", reference="Doe 2026")
class Nearer(DirectMethod):
    """The overall shares."""

    def fit(self, train, schema, rng):
        return Shares(train.prior, schema, self.params)


class Shares:
    def __init__(self, prior, schema, params):
        self.prior, self.schema, self.params = prior, schema, params

    def __call__(self, rows):
        return np.tile(self.prior, (len(rows.numeric), 1)) * (self.schema.classes == 2)
'''


def test_plugin_model_needs_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._index()))
    before = METHODS._entries
    (tmp_path / "nearer.py").write_text(PLUGIN)
    load_plugin(tmp_path / "nearer.py")
    frame, bags, votes = people(20, 10)
    model = LLPClassifier("nearer").fit(frame, bags, counts=counted(bags, votes))
    model.save(tmp_path / "model")
    expected, entry = model.predict_proba(frame), METHODS._entries["nearer"]
    assert np.array_equal(LLPClassifier.load(tmp_path / "model").predict_proba(frame), expected)

    METHODS._entries = {name: entry for name, entry in before.items() if name != "nearer"}
    with pytest.raises(LLPBenchError, match=r"needs method 'nearer' .*--plugin FILE\.py"):
        LLPClassifier.load(tmp_path / "model")
    METHODS._entries = {**before, **METHODS._entries, "nearer": entry}
    assert np.array_equal(LLPClassifier.load(tmp_path / "model").predict_proba(frame), expected)
