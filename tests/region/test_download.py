"""Downloads against a local server: cached, resumed, whole or not at all."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from prisma_sbi.region.download import DownloadError, drop_broken_json, fetch

BODY = np.random.Generator(np.random.PCG64(1)).bytes(300_000)


@dataclass
class Server:
    """What the server should do, and what it was asked."""

    url: str = ""
    body: bytes = BODY
    tag: str | None = '"v1"'
    ranges: bool = True
    length: bool = True
    statuses: list[int] = field(default_factory=list)  # answers to give before serving
    break_after: list[int] = field(default_factory=list)  # bytes sent before hanging up
    asked: list[str | None] = field(default_factory=list)  # Range headers


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            server.asked.append(asked)
            if server.statuses:
                self.send_response(server.statuses.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = 0
            if asked and server.ranges and self.headers.get("If-Range") == server.tag:
                match = re.fullmatch(r"bytes=(\d+)-", asked)
                assert match is not None
                start = int(match[1])
            if start >= len(server.body):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = server.body[start:]
            self.send_response(206 if start else 200)
            if server.length:
                self.send_header("Content-Length", str(len(body)))
            if server.tag:
                self.send_header("ETag", server.tag)
            self.end_headers()
            n_bytes = server.break_after.pop(0) if server.break_after else len(body)
            self.wfile.write(body[:n_bytes])

        def log_message(self, *args: object):
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}/file.bin"
    try:
        yield state
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_fetch_downloads_once_and_reports_progress(server: Server, tmp_path: Path):
    seen: list[tuple[int, int | None]] = []
    target = tmp_path / "deep" / "file.bin"
    path = fetch(server.url, target, progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    fetch(server.url, target)
    assert len(server.asked) == 1
    assert _names(target.parent) == {"file.bin"}


def test_fetch_resumes_a_broken_connection(server: Server, tmp_path: Path):
    server.break_after = [150_000, 50_000]
    path = fetch(server.url, tmp_path / "file.bin", retry_wait_s=0.0)
    assert path.read_bytes() == BODY
    assert server.asked == [None, "bytes=150000-", "bytes=200000-"]


def test_fetch_resumes_after_the_process_died(server: Server, tmp_path: Path):
    server.break_after = [100_000]
    with pytest.raises(DownloadError, match="arrive whole"):
        fetch(server.url, tmp_path / "file.bin", attempts=1)
    assert not (tmp_path / "file.bin").exists()
    assert (tmp_path / "file.bin.part").stat().st_size == 100_000
    assert fetch(server.url, tmp_path / "file.bin").read_bytes() == BODY
    assert server.asked[-1] == "bytes=100000-"


def test_fetch_never_joins_two_versions(server: Server, tmp_path: Path):
    server.break_after = [100_000]
    with pytest.raises(DownloadError):
        fetch(server.url, tmp_path / "file.bin", attempts=1)
    server.tag, server.body = '"v2"', BODY[::-1]
    assert fetch(server.url, tmp_path / "file.bin").read_bytes() == BODY[::-1]


@pytest.mark.parametrize(("tag", "ranges"), [(None, True), ('W/"weak"', True), ('"v1"', False)])
def test_fetch_starts_over_where_it_cannot_resume(
    server: Server, tmp_path: Path, tag: str | None, ranges: bool
):
    server.tag, server.ranges, server.break_after = tag, ranges, [100_000]
    path = fetch(server.url, tmp_path / "file.bin", retry_wait_s=0.0)
    assert path.read_bytes() == BODY


def test_fetch_starts_over_when_the_part_is_too_long(server: Server, tmp_path: Path):
    (tmp_path / "file.bin.part").write_bytes(BODY + b"more")
    (tmp_path / "file.bin.version").write_text('"v1"', encoding="utf-8")
    path = fetch(server.url, tmp_path / "file.bin", retry_wait_s=0.0)
    assert path.read_bytes() == BODY


def test_fetch_accepts_an_unknown_length(server: Server, tmp_path: Path):
    server.length = False
    seen: list[int | None] = []
    path = fetch(server.url, tmp_path / "file.bin", progress=lambda _, total: seen.append(total))
    assert path.read_bytes() == BODY
    assert set(seen) == {None}


def test_fetch_retries_a_busy_server(server: Server, tmp_path: Path):
    server.statuses = [503, 429]
    path = fetch(server.url, tmp_path / "file.bin", retry_wait_s=0.0)
    assert path.read_bytes() == BODY
    assert len(server.asked) == 3


def test_fetch_gives_up_after_the_attempts(server: Server, tmp_path: Path):
    server.statuses = [500] * 9
    with pytest.raises(DownloadError, match="within 3 attempts; got HTTP status 500") as caught:
        fetch(server.url, tmp_path / "file.bin", attempts=3, retry_wait_s=0.0)
    assert caught.value.status == 500
    assert len(server.asked) == 3


def test_fetch_does_not_retry_a_missing_file(server: Server, tmp_path: Path):
    server.statuses = [404]
    with pytest.raises(DownloadError, match="HTTP status 404") as caught:
        fetch(server.url, tmp_path / "file.bin")
    assert caught.value.status == 404
    assert len(server.asked) == 1
    assert _names(tmp_path) == set()


def test_fetch_names_an_unreachable_server(server: Server, tmp_path: Path):
    closed = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    port = closed.server_port
    closed.server_close()
    with pytest.raises(DownloadError, match=f"127.0.0.1:{port}") as caught:
        fetch(f"http://127.0.0.1:{port}/x", tmp_path / "x", attempts=2, retry_wait_s=0.0)
    assert caught.value.status is None


def test_fetch_refuses_other_schemes(tmp_path: Path):
    with pytest.raises(ValueError, match="Expected an address with http or https"):
        fetch("file:///etc/hostname", tmp_path / "x")


def test_drop_broken_json_keeps_whole_files(tmp_path: Path):
    (tmp_path / "whole.json").write_text('{"elements": []}', encoding="utf-8")
    (tmp_path / "half.json").write_text('{"elements": [{"ty', encoding="utf-8")
    (tmp_path / "empty.json").touch()
    assert drop_broken_json(tmp_path) == 2
    assert _names(tmp_path) == {"whole.json"}
