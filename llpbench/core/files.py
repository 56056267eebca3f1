"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import one_line

MODE = 0o666
"""permissions of a new file, before the umask takes some away"""


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace the file at `path`; on any failure the old one stays as it was. Raises `OSError`.

    An existing file keeps its permissions. A new one has those that the umask leaves.
    """
    data = content.encode() if isinstance(content, str) else content
    path = Path(os.path.realpath(path))  # a link stays one
    handle, temporary = _open_beside(path)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _open_beside(path: Path) -> tuple[int, Path]:
    """Open a new file in the folder of `path`, with the permissions of the file that it shall replace."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return os.open(temporary, _NEW, MODE), temporary
    handle = os.open(temporary, _NEW, mode & stat.S_IRWXU)  # never wider than the file, not even for a moment
    os.chmod(temporary, mode)  # the umask does not apply to what the owner has chosen
    return handle, temporary


def write_new(path: Path, content: bytes, mode: int = MODE) -> Path:
    """Write a file without replacing any: where there is one, the name gets a number. Raises `OSError`.

    `mode`: its permissions, before the umask takes some away.
    """
    for number in count(1):
        place = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            handle = os.open(place, _NEW, mode)
        except FileExistsError:
            continue
        try:
            with open(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            place.unlink()
            raise
        return place
    raise AssertionError


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def at_home(path: str | Path) -> Path:
    """A path, with the folder that a leading `~` stands for. Raises `LLPBenchError` if nobody knows that."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise LLPBenchError(f"nobody knows the home folder of {str(path)!r}. Write the whole path.") from None


def require_folder(folder: Path, what: str) -> None:
    """Raise `LLPBenchError` if a folder cannot be written to; `what` names what goes there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LLPBenchError(
            f"{what} cannot be kept in {str(folder)!r}: {error.strerror or error}. Choose another --out."
        ) from error


def obstacle(path: Path) -> str:
    """Why no file or folder can be made or replaced at `path`, folders above it included, as far as that can be seen
    before it is tried; "" if nothing speaks against it."""
    try:
        above = next(each for each in (path, *path.absolute().parents) if each.exists())
        if above != path and not above.is_dir():
            return f"{str(above)!r} is a file"
        if not os.access(above, os.W_OK):
            return f"{str(above)!r} is read-only"
        with tempfile.TemporaryFile(dir=above if above.is_dir() else above.parent) as file:
            file.write(bytes(_BLOCK))
        return ""
    except OSError as error:
        return error.strerror or one_line(error)


_BLOCK = 4096
"""bytes that a disk has room for, or is full"""


WRITTEN = ".written"
"""in a folder of generated files: their names, a line each"""


def forget_stale(folder: Path, names: Iterable[str]) -> None:
    """Delete what was generated here before and is no more, and remember what is now; nobody else's file is touched.

    Raises `OSError`.
    """
    now, memory = sorted(names), folder / WRITTEN
    before = memory.read_text(encoding="utf-8").splitlines() if memory.exists() else []
    for name in set(before).difference(now):
        if name == Path(name).name:
            (folder / name).unlink(missing_ok=True)
    replace_file(memory, "".join(f"{name}\n" for name in now))
