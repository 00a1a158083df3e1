"""Road profiles: what the simulator sees of a route."""

import enum
from dataclasses import dataclass

import numpy as np


class RouteStatus(enum.IntEnum):
    """How routing ended for one trip."""

    OK = 0
    BAD_COORDINATE = 1
    OUT_OF_REGION = 2
    SAME_PLACE = 3
    UNREACHABLE = 4

    @property
    def text(self) -> str:
        """A sentence for people."""
        return _TEXT[self]


_TEXT = {
    RouteStatus.OK: "routed",
    RouteStatus.BAD_COORDINATE: "a coordinate is missing or not a number",
    RouteStatus.OUT_OF_REGION: "start or end lies outside the bounding box",
    RouteStatus.SAME_PLACE: "start and end snap to the same junction",
    RouteStatus.UNREACHABLE: "no drivable path leads from start to end",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class RoadProfiles:
    """Routes unfolded to points at equal spacing, one row a trip.

    Attributes
    ----------
    length_m : (trip,) float32
        Length of the shortest path; point ``i`` of ``n`` lies at ``length_m i / (n - 1)``.
    speed_mps : (trip, point) float32
        Drivable speed, already lowered at signals and stop signs; positive.
    grade : (trip, point) float32
        Rise over run in the direction of travel, positive uphill.
    start_node, end_node : (trip,) int32
        Positions in the node arrays of the network; -1 where not snapped.
    status : (trip,) uint8
        :class:`RouteStatus`. Rows that are not OK hold a harmless flat 1 m road.
    """

    length_m: np.ndarray
    speed_mps: np.ndarray
    grade: np.ndarray
    start_node: np.ndarray
    end_node: np.ndarray
    status: np.ndarray

    def __len__(self) -> int:
        return len(self.length_m)

    def take(self, index: np.ndarray) -> "RoadProfiles":
        """Rows at the given positions (or where a mask is true)."""
        return RoadProfiles(
            length_m=self.length_m[index],
            speed_mps=self.speed_mps[index],
            grade=self.grade[index],
            start_node=self.start_node[index],
            end_node=self.end_node[index],
            status=self.status[index],
        )
