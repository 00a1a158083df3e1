"""The region: every public input in one record with one fingerprint."""

import hashlib
import json
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property

import numpy as np

from prisma_sbi._errors import RegionMismatchError
from prisma_sbi.region.bounds import Bounds
from prisma_sbi.region.constants import ADDED_LATER, Constants
from prisma_sbi.region.elevation import Elevation
from prisma_sbi.region.pool import VehiclePool
from prisma_sbi.region.roads import RoadNetwork


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """All public inputs, chosen before any private record is read.

    Attributes
    ----------
    name
        For people; not part of the fingerprint.
    bounds
        Trips that start or end outside are set aside.
    roads, elevation, vehicles, constants
        Network, heights, candidate vehicles, constants of the method.
    """

    name: str
    bounds: Bounds
    roads: RoadNetwork
    elevation: Elevation
    vehicles: VehiclePool
    constants: Constants = field(default_factory=Constants)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the content (16 hex digits); equal for equal content on any machine."""
        digest = hashlib.sha256(b"prisma_sbi region 1")
        for part in (self.bounds, self.roads, self.elevation, self.vehicles, self.constants):
            _update(digest, part)
        return digest.hexdigest()[:16]

    def require_same(self, fingerprint: str | None, *, what: str) -> None:
        """Raise :class:`RegionMismatchError` unless ``what`` was derived from this region."""
        if fingerprint != self.fingerprint:
            raise RegionMismatchError(
                f"Expected {what} derived from region {self.name!r} ({self.fingerprint}); got "
                f"one derived from {fingerprint or 'an unknown region'}. "
                "Use the region it was made with, or redo it with this one."
            )


def _update(digest: "hashlib._Hash", part: object) -> None:
    """Feed one record into the digest, field by field, with names and types."""
    assert is_dataclass(part)
    digest.update(type(part).__name__.encode())
    for item in fields(part):
        value = getattr(part, item.name)
        if item.metadata.get(ADDED_LATER) and value == item.default:
            continue
        digest.update(item.name.encode())
        if isinstance(value, np.ndarray):
            plain = value.astype("U") if value.dtype.kind in "OUT" else value
            if plain.dtype.kind == "U":
                digest.update("\x1f".join(plain.tolist()).encode())
            else:
                little = np.ascontiguousarray(plain, dtype=plain.dtype.newbyteorder("<"))
                digest.update(f"{little.dtype.str}{little.shape}".encode())
                digest.update(little.tobytes())
        else:
            plain_value = list(value) if isinstance(value, tuple) else value
            digest.update(json.dumps(plain_value).encode())
