"""`prisma region`: the public inputs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi.cli.console import print_facts, print_json, progress_bar, tracker, wrote
from prisma_sbi.cli.errors import resumable
from prisma_sbi.cli.options import Force, Json
from prisma_sbi.cli.output import REGION, fresh_output
from prisma_sbi.region import (
    Bounds,
    Elevation,
    Region,
    RoadNetwork,
    VehiclePool,
    build_region,
    builtin_pool,
    download_roads,
    fetch_terrain_tiles,
    load_region,
    network_bounds,
    read_roads,
    save_region,
)

BUILTIN = "builtin"
POOL_SIZE = 128

app = typer.Typer(
    no_args_is_help=True,
    help="Build and show the public inputs: roads, heights, vehicles.",
    epilog="Example: prisma region show out/demo/region",
)


@app.command(
    epilog="Example: prisma region build --roads roads.graphml --elevation dem.tif -o city"
)
@resumable
def build(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the region.")],
    place: Annotated[str, typer.Option(help="Place whose roads are downloaded, by name.")] = "",
    bbox: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(metavar="S N W E", help="Box whose roads are downloaded, in degrees."),
    ] = None,
    roads: Annotated[
        Path | None, typer.Option(help="Road file instead: GraphML, OSM XML or PBF.")
    ] = None,
    elevation: Annotated[
        Path | None,
        typer.Option(help="GeoTIFF, .hgt file or folder of them; downloaded if not given."),
    ] = None,
    vehicles: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|builtin",
            help="EPA test-car list or FASTSim table (repeat for more), or the built-in list.",
            show_default=BUILTIN,
        ),
    ] = None,
    pool_size: Annotated[
        int | None,
        typer.Option(min=1, help="Vehicles to keep from the files.", show_default=str(POOL_SIZE)),
    ] = None,
    name: Annotated[
        str, typer.Option(help="Name for people.", show_default="place or folder")
    ] = "",
    cache: Annotated[Path, typer.Option(help="Folder for downloads, kept for next time.")] = Path(
        "cache"
    ),
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Build a region from files, or download its roads and heights.

    Name one source of roads: --roads, --place or --bbox. Downloads stay in the
    cache and go on where they stopped.
    """
    fresh_output(output, force=force, mark=REGION)
    if sum(item is not None for item in (place or None, bbox, roads)) != 1:
        raise ValueError(
            "Expected exactly one of --place, --bbox and --roads; "
            "got none or several. Name one source of roads."
        )
    fleet = _vehicles(vehicles, pool_size)
    box = None
    if bbox is not None:
        south, north, west, east = bbox
        box = Bounds(south_deg=south, north_deg=north, west_deg=west, east_deg=east)
    with progress_bar() as bars:
        task = bars.add_task("roads", total=None)
        network = _roads(roads, place, box, cache=cache)
        bars.remove_task(task)
        heights = elevation or _download_heights(network, cache, tracker(bars, "heights, KiB"))
        bars.add_task("vehicles and region", total=None)
        region = build_region(
            name=name or place or output.resolve().name,
            roads=network,
            elevation=heights,
            vehicles=fleet,
            bounds=box,
            pool_size=pool_size or POOL_SIZE,
        )
        save_region(region, output)
    wrote(output)
    _show(region, as_json=as_json)


def _vehicles(names: list[str] | None, pool_size: int | None) -> list[str | Path] | VehiclePool:
    """Vehicle files, or the built-in pool, whose size is fixed."""
    if not names or names == [BUILTIN]:
        if pool_size is not None:
            raise ValueError(
                "Expected --pool-size together with vehicle files; got it with the built-in list, "
                f"which has {len(builtin_pool())} vehicles. Name files with --vehicles."
            )
        return builtin_pool()
    if BUILTIN in names:
        raise ValueError(
            f"Expected vehicle files or {BUILTIN!r}; got both. Name one of them with --vehicles."
        )
    return list(names)


def _roads(roads: Path | None, place: str, box: Bounds | None, *, cache: Path) -> RoadNetwork:
    """The road network from a file or from OpenStreetMap's servers."""
    if roads is not None:
        return read_roads(roads)
    if place:
        return download_roads(cache=cache, place=place)
    return download_roads(cache=cache, bounds=box)


def _download_heights(
    network: RoadNetwork, cache: Path, move: Callable[[int, int | None], None]
) -> Elevation:
    """Terrain tiles under a road network."""
    return fetch_terrain_tiles(
        network_bounds(network),
        cache=cache,
        progress=lambda done, total: move(done // 1024, total and total // 1024),
    )


@app.command(epilog="Example: prisma region show out/demo/region")
def show(
    folder: Annotated[Path, typer.Argument(help="Folder of the region.")],
    as_json: Json = False,
) -> None:
    """Show what a region holds, after checking its fingerprint."""
    _show(load_region(folder), as_json=as_json)


def _show(region: Region, *, as_json: bool) -> None:
    """Facts of a region."""
    box = region.bounds
    facts = {
        "name": region.name,
        "fingerprint": region.fingerprint,
        "south_deg": box.south_deg,
        "north_deg": box.north_deg,
        "west_deg": box.west_deg,
        "east_deg": box.east_deg,
        "junctions": region.roads.n_nodes,
        "edges": region.roads.n_edges,
        "controlled_junctions": int((region.roads.node_control > 0).sum()),
        "lowest_m": float(region.elevation.height_m.min()),
        "highest_m": float(region.elevation.height_m.max()),
        "vehicles": len(region.vehicles),
        "attribution": region.roads.attribution,
    }
    if as_json:
        print_json(facts)
        return
    counts = ("junctions", "controlled_junctions", "edges", "vehicles")
    print_facts(
        "Region",
        {
            "name": region.name,
            "fingerprint": region.fingerprint,
            "latitude": f"{box.south_deg:.5f} to {box.north_deg:.5f} degrees",
            "longitude": f"{box.west_deg:.5f} to {box.east_deg:.5f} degrees",
            "height": f"{facts['lowest_m']:,.0f} to {facts['highest_m']:,.0f} m",
            **{name.replace("_", " "): f"{facts[name]:,}" for name in counts},
            "attribution": region.roads.attribution,
        },
    )
