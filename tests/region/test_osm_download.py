"""Roads from OpenStreetMap's servers, played by a local one."""

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import osmnx
import pytest

from prisma_sbi._errors import InputDataError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.download import DownloadError
from prisma_sbi.region.osm_download import download_roads

BOX = Bounds(south_deg=44.99, north_deg=45.01, west_deg=7.99, east_deg=8.01)
_STATUS = "Connected as: 1\nCurrent time: x\nAnnounced endpoint: none\nRate limit: 2\n2 slots\n"


def _elements() -> list[dict[str, Any]]:
    places = [(45.0, 8.0), (45.0, 8.001), (45.0, 8.002), (45.001, 8.002), (45.001, 8.0)]
    nodes: list[dict[str, Any]] = [
        {"type": "node", "id": i + 1, "lat": lat, "lon": lon} for i, (lat, lon) in enumerate(places)
    ]
    nodes[1]["tags"] = {"highway": "crossing", "crossing": "traffic_signals"}
    tags = {"highway": "tertiary", "maxspeed": "50"}
    loop = {"type": "way", "id": 1, "nodes": [1, 2, 3, 4, 5, 1], "tags": tags}
    cross = {"type": "way", "id": 2, "nodes": [1, 4], "tags": {"highway": "residential"}}
    return [*nodes, loop, cross]


@dataclass
class Server:
    url: str = ""
    elements: list[dict[str, Any]] = field(default_factory=_elements)
    found: bool = True
    broken: bool = False
    asked: list[str] = field(default_factory=list)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    corners = [[7.99, 44.99], [8.01, 44.99], [8.01, 45.01], [7.99, 45.01], [7.99, 44.99]]
    place = {
        "place_id": 1,
        "osm_type": "relation",
        "osm_id": 1,
        "lat": "45.0",
        "lon": "8.0",
        "class": "boundary",
        "type": "administrative",
        "place_rank": 16,
        "importance": 0.5,
        "addresstype": "city",
        "name": "Nowhere",
        "display_name": "Nowhere",
        "boundingbox": ["44.99", "45.01", "7.99", "8.01"],
        "geojson": {"type": "Polygon", "coordinates": [corners]},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path.endswith("/status"):
                self._answer(_STATUS.encode())
                return
            server.asked.append(parse_qs(urlsplit(self.path).query)["q"][0])
            self._answer(json.dumps([place] if server.found else []).encode())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            server.asked.append(parse_qs(body)["data"][0])
            if server.broken:
                self._answer(b"<html>out of order</html>", status=500)
                return
            self._answer(json.dumps({"version": 0.6, "elements": server.elements}).encode())

        def _answer(self, body: bytes, status: int = 200):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object):
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{httpd.server_port}/api"
    try:
        yield state
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def test_download_by_bounds_is_cached_and_keeps_signals(server: Server, tmp_path: Path):
    before, resolve = dict(vars(osmnx.settings)), socket.getaddrinfo
    network = download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url)
    assert network.node_id.tolist() == [1, 2, 4]
    assert network.node_control.tolist() == [0, 1, 0]
    assert set(network.edge_class) == {"tertiary", "residential"}
    assert "motorcar" in server.asked[0]
    again = download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url)
    assert len(server.asked) == 1
    assert again.edge_length_m.tolist() == network.edge_length_m.tolist()
    assert dict(vars(osmnx.settings)) == before
    assert socket.getaddrinfo is resolve


def test_download_repairs_a_half_written_cache(server: Server, tmp_path: Path):
    download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url)
    (answer,) = (tmp_path / "osm").glob("*.json")
    answer.write_bytes(answer.read_bytes()[:50])
    download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url)
    assert len(server.asked) == 2


def test_download_by_place_asks_for_its_outline(server: Server, tmp_path: Path):
    network = download_roads(
        place="Nowhere", cache=tmp_path, overpass_url=server.url, nominatim_url=server.url
    )
    assert network.n_nodes == 3
    assert server.asked[0] == "Nowhere"
    assert "45.01" in server.asked[1]


def test_download_of_an_unknown_place_says_so(server: Server, tmp_path: Path):
    server.found = False
    with pytest.raises(InputDataError, match="drivable roads for the place 'Atlantis'"):
        download_roads(
            place="Atlantis", cache=tmp_path, overpass_url=server.url, nominatim_url=server.url
        )


def test_download_without_roads_says_so(server: Server, tmp_path: Path):
    server.elements = []
    with pytest.raises(InputDataError, match="got none"):
        download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url)


def test_download_from_a_broken_server_is_an_error_and_not_cached(server: Server, tmp_path: Path):
    server.broken = True
    before = dict(vars(osmnx.settings))
    with pytest.raises(DownloadError, match="servers to answer for Bounds"):
        download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url)
    assert dict(vars(osmnx.settings)) == before
    server.broken = False
    assert download_roads(bounds=BOX, cache=tmp_path, overpass_url=server.url).n_nodes == 3


def test_download_wants_one_place_or_box(tmp_path: Path):
    with pytest.raises(ValueError, match="either a place or bounds"):
        download_roads(cache=tmp_path)
    with pytest.raises(ValueError, match="either a place or bounds"):
        download_roads(cache=tmp_path, place="Nowhere", bounds=BOX)
