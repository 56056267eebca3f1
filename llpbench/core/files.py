"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO

from llpbench.core.errors import LLPBenchError
from llpbench.core.text import one_line

MODE = 0o666
"""permissions of a new file, before the umask"""


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace the file at `path`, as `replaced` does."""
    with replaced(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file that replaces the one at `path`; on any failure the old file stays unchanged. Raises `OSError`.

    An existing file keeps its permissions. A new one has `MODE`, reduced by the umask.
    """
    path = Path(os.path.realpath(path))  # replace the target of a link, not the link
    handle, temporary = _open_beside(path)
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _open_beside(path: Path) -> tuple[int, Path]:
    """Open a new temporary file in the folder of `path`, with the permissions of the file that it will replace."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return os.open(temporary, _NEW, MODE), temporary
    handle = os.open(temporary, _NEW, mode & stat.S_IRWXU)  # permissions are never wider than those of the file
    os.chmod(temporary, mode)  # the umask does not apply to permissions that the owner has chosen
    return handle, temporary


def write_new(path: Path, content: bytes, mode: int = MODE) -> Path:
    """Write a new file without replacing another. If the name exists, a number is added. Raises `OSError`.

    `mode` are its permissions, before the umask.
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
    """Return a path with a leading `~` expanded. Raises `LLPBenchError` if the home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise LLPBenchError(f"the home folder of {str(path)!r} is unknown. Write the full path.") from None


def require_folder(folder: Path, what: str) -> None:
    """Raise `LLPBenchError` unless a folder can be written to; `what` names its content."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LLPBenchError(
            f"{what} cannot be stored in {str(folder)!r}: {error.strerror or error}. Choose another --out."
        ) from error


def obstacle(path: Path) -> str:
    """Return why a file at `path` cannot be created or replaced; "" if no obstacle is visible in advance.

    The folders above `path` are checked as well.
    """
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
"""number of bytes that are written to check whether the disk is full"""


WRITTEN = ".written"
"""file with the names of the generated files in a folder, one per line"""


def forget_stale(folder: Path, names: Iterable[str]) -> None:
    """Delete generated files that are not in `names`, and store `names` as the generated files.

    Files that were not generated stay unchanged. Raises `OSError`.
    """
    now, memory = sorted(names), folder / WRITTEN
    before = memory.read_text(encoding="utf-8").splitlines() if memory.exists() else []
    for name in set(before).difference(now):
        if name == Path(name).name:
            (folder / name).unlink(missing_ok=True)
    replace_file(memory, "".join(f"{name}\n" for name in now))
