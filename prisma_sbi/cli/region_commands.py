"""`prisma region`: the public inputs."""

from pathlib import Path
from typing import Annotated

import typer

from prisma_sbi.cli.console import messages, print_json, print_table, progress_bar
from prisma_sbi.cli.output import fresh_output
from prisma_sbi.region import (
    Bounds,
    Region,
    build_region,
    builtin_pool,
    download_roads,
    fetch_terrain_tiles,
    load_region,
    network_bounds,
    read_roads,
    save_region,
)

app = typer.Typer(
    no_args_is_help=True, help="Build and show the public inputs: roads, heights, vehicles."
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command(
    epilog="Example: prisma region build --roads roads.graphml --elevation dem.tif -o city"
)
def build(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the region.")],
    place: Annotated[str, typer.Option(help="Place whose roads are downloaded, by name.")] = "",
    bbox: Annotated[
        tuple[float, float, float, float] | None,
        typer.Option(help="Box to download: south north west east, in degrees."),
    ] = None,
    roads: Annotated[
        Path | None, typer.Option(help="Road file instead: GraphML, OSM XML or PBF.")
    ] = None,
    elevation: Annotated[
        Path | None,
        typer.Option(help="GeoTIFF, .hgt file or folder of them; downloaded if not given."),
    ] = None,
    vehicles: Annotated[
        list[Path] | None,
        typer.Option(help="EPA test-car lists or FASTSim table (repeat); built-in list if none."),
    ] = None,
    pool_size: Annotated[int, typer.Option(help="Vehicles to keep.", min=1)] = 128,
    name: Annotated[str, typer.Option(help="Name for people.")] = "",
    cache: Annotated[Path, typer.Option(help="Folder for downloads.")] = Path("cache"),
    force: Annotated[bool, typer.Option(help="Replace an existing region.")] = False,
    as_json: Json = False,
) -> None:
    """Build a region from files, or download its roads and heights."""
    fresh_output(output, force=force)
    if sum(bool(item) for item in (place, bbox, roads)) != 1:
        raise ValueError(
            "Expected exactly one of --place, --bbox and --roads; "
            "got none or several. Name one source of roads."
        )
    box = None
    if bbox is not None:
        south, north, west, east = bbox
        box = Bounds(south_deg=south, north_deg=north, west_deg=west, east_deg=east)
    with progress_bar() as bars:
        task = bars.add_task("roads", total=None)
        if roads is not None:
            network = read_roads(roads)
        elif place:
            network = download_roads(cache=cache, place=place)
        else:
            network = download_roads(cache=cache, bounds=box)
        bars.update(task, description="heights")
        heights = elevation or fetch_terrain_tiles(network_bounds(network), cache=cache)
        bars.update(task, description="vehicles")
        region = build_region(
            name=name or place or output.name,
            roads=network,
            elevation=heights,
            vehicles=list(vehicles) if vehicles else builtin_pool(),
            bounds=box,
            pool_size=pool_size,
        )
        save_region(region, output)
    messages.print(f"[green]wrote[/] {output}")
    _show(region, as_json=as_json)


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
    rows = [
        {
            "fact": key.replace("_", " "),
            "value": f"{value:,.5g}" if key.endswith("_m") else str(value),
        }
        for key, value in facts.items()
    ]
    print_table("Region", {"fact": "", "value": ""}, rows)
