"""Fetching one file over HTTP: cached, resumable, and whole or not at all."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prisma_sbi import _validate

Progress = Callable[[int, int | None], None]
"""Called with the bytes received so far and the total, if the server told it."""

_CHUNK_BYTES = 1 << 16
_USER_AGENT = "prisma_sbi"
_WORTH_A_RETRY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}


class DownloadError(OSError):
    """A download did not succeed; ``status`` is the HTTP status, if there was one."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Interrupted(Exception):
    """The transfer broke off in a way that another attempt may mend."""


def fetch(
    url: str,
    target: str | Path,
    *,
    progress: Progress | None = None,
    attempts: int = 5,
    retry_wait_s: float = 1.0,
    timeout_s: float = 60.0,
) -> Path:
    """Download a file once; a second call finds it and stays off the network.

    Parameters
    ----------
    url
        ``http`` or ``https`` address.
    target
        File to write. Folders above it are made.
    progress
        Called after each block with the bytes received and the total (or ``None``).
    attempts
        Tries in all before giving up.
    retry_wait_s
        Wait before the second try; it doubles with each further one.
    timeout_s
        Longest silence of the server.

    Returns
    -------
    target : pathlib.Path

    Raises
    ------
    DownloadError
        If the server refuses the file, or does not deliver it whole in ``attempts`` tries.
    ValueError
        If the address is not ``http`` or ``https``.

    Notes
    -----
    Bytes go to ``<target>.part``, which is renamed when complete, so that ``target`` never
    holds half a file. What a broken transfer or a killed process left there is continued
    with an HTTP range request; the version of the file (``ETag`` or ``Last-Modified``) is
    remembered beside it, so that parts of two versions are never joined. A server that
    knows no ranges, or names no version, sends the file from the start.
    """
    target = Path(target)
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError(f"Expected an address with http or https; got {url!r}.")
    _validate.at_least(1, attempts=attempts)
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(attempts):
        try:
            _transfer(url, target, progress=progress, timeout_s=timeout_s)
        except _Interrupted as error:
            if attempt + 1 == attempts:
                raise DownloadError(
                    f"Expected {url} to arrive whole within {attempts} attempts; got {error}. "
                    "Call again to continue from what has arrived.",
                    status=getattr(error.__cause__, "code", None),
                ) from error
            time.sleep(retry_wait_s * 2**attempt)
        else:
            break
    return target


def _transfer(url: str, target: Path, *, progress: Progress | None, timeout_s: float) -> None:
    """One attempt: ask for what is missing, append it, rename when complete."""
    part, note = target.with_name(target.name + ".part"), target.with_name(target.name + ".version")
    version = note.read_text(encoding="utf-8") if note.is_file() and part.is_file() else ""
    offset = part.stat().st_size if version else 0
    headers = {"User-Agent": _USER_AGENT}
    if offset:
        headers |= {"Range": f"bytes={offset}-", "If-Range": version}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            if response.status != HTTPStatus.PARTIAL_CONTENT:
                offset = 0
                part.unlink(missing_ok=True)  # before its version changes
                note.write_text(_version(response.headers), encoding="utf-8")
            total = _total_bytes(response, offset)
            _receive(response, part, offset=offset, total=total, progress=progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
        elif error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in _WORTH_A_RETRY:
            raise DownloadError(
                f"Expected {url} to be served; got HTTP status {error.code} ({error.reason}). "
                "Check the address.",
                status=error.code,
            ) from error
        raise _Interrupted(f"HTTP status {error.code}") from error
    except (
        urllib.error.URLError,
        http.client.HTTPException,
        ConnectionError,
        TimeoutError,
    ) as error:
        raise _Interrupted(f"{type(error).__name__}: {error}") from error
    part.replace(target)
    note.unlink(missing_ok=True)


def _receive(
    response: Any, part: Path, *, offset: int, total: int | None, progress: Progress | None
) -> None:
    """Append the body to the part and check that it is as long as announced."""
    with part.open("r+b" if offset else "wb") as file:
        file.seek(offset)
        received = offset
        while block := response.read(_CHUNK_BYTES):
            file.write(block)
            received += len(block)
            if progress is not None:
                progress(received, total)
    if total is not None and received != total:
        raise _Interrupted(f"{received} of {total} bytes")


def _version(headers: Any) -> str:
    """Tell what names this version in an ``If-Range`` header; weak tags do not."""
    tag = headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")


def _total_bytes(response: Any, offset: int) -> int | None:
    """Size of the whole file as the server announces it."""
    announced = response.headers.get("Content-Length")
    return None if announced is None else offset + int(announced)


def drop_broken_json(folder: str | Path) -> int:
    """Delete JSON files of a cache that a killed process left half-written; return how many."""
    n_dropped = 0
    for path in Path(folder).glob("*.json"):
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            path.unlink()
            n_dropped += 1
    return n_dropped
