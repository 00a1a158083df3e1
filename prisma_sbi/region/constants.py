"""Public constants of a region: what everybody may know before any trip is read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from prisma_sbi import _validate

ADDED_LATER = "added_later"
"""Mark of a field that regions of earlier versions lack: at its default it stays out of the
fingerprint, so that theirs does not change."""

PRESETS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "published": MappingProxyType({}),
        "realistic": MappingProxyType(
            {
                "acceleration_ceiling_mps2": 4.0,
                "acceleration_fade_mps": 8.0,
                "brake_fraction": 0.7,
                "idle_power_w_per_l": 3_000.0,
                "end_speed_share": 0.7,
                "end_traffic_power": 4.0,
                "hybrid_share": 0.5,
                "energy_scale": 0.03,
                "electric_efficiency": 0.85,
                "electric_recuperation": 0.6,
                "speed_wander": 0.33,
                "speed_wander_length_m": 190.0,
                "speed_wander_limit": 1.2,
                "aggressiveness_shrinkage": 0.2,
                "restlessness": 0.36,
                "start_speed_share": 0.5,
            }
        ),
    }
)
"""Sets of constants by name. ``published`` is the driver of the paper; ``realistic`` starts and
ends on the move and where the traffic is, as recordings do that were cut, gathers speed as an
engine of limited power does, brakes more gently than it accelerates, idles at the fuel flow of
real engines, knows hybrids and electric cars, and draws traffic and a restless foot for drivers
nearer to the typical one when it decodes (see docs/realism.md)."""


@dataclass(frozen=True, kw_only=True)
class Constants:
    """Constants of the road, the driver, the vehicle, the loss and the bin grid.

    All of them are fixed before private data is touched, so none costs privacy. They
    enter the fingerprint of the region.

    Attributes
    ----------
    horizon_s, time_step_s
        Length and sampling interval of every trace.
    n_route_points
        Points at equal spacing along an unfolded route.
    acceleration_ceiling_mps2
        ``A``: the acceleration limit of a driver with aggressiveness 1.
    acceleration_fade_mps
        Speed at which the acceleration limit has fallen to half; 0, the published driver, for
        a limit that does not fall. Engines give power, so real cars gather speed more slowly the
        faster they are, and the power of a start lasts.
    brake_fraction
        ``B``: comfortable braking as a fraction of the acceleration limit.
    control_gain_per_s
        ``K``: how fast the driver closes a gap to the desired speed.
    tank_efficiency
        ``eta``: power at the wheels over power from the tank.
    recuperation
        ``r``: share of the braking power that returns to the store.
    idle_power_w_per_l
        Fuel power of an idling engine per liter of displacement.
    start_speed_share
        Speed at the start as a share of the drivable speed there. 0 is the published driver,
        which starts from rest; recordings that were cut at a boundary start on the move.
    end_speed_share
        Speed at the end as a share of the drivable speed there; 0, the published driver, for a
        full stop.
    end_traffic_power
        The route table draws starts and ends in proportion to this power of the fastest speed
        limit that meets at a junction; 0, as published, for all junctions alike. A freeway of
        30 m/s carries some sixty times the traffic of a street of 11 m/s, which is a power of 4,
        and recordings that are cut at a boundary end where the traffic is.
    hybrid_share, engine_on_w
        Share of the combustion vehicles of the pool that are taken for hybrids, and the power at
        the wheels below which their engine is off.
    electric_efficiency, electric_recuperation
        Like ``tank_efficiency`` and ``recuperation``, for vehicles without displacement; an
        efficiency of 0, as published, drives them like engines.
    speed_wander, speed_wander_length_m, speed_wander_limit
        How much the drivable speed of decoded trips wanders along the road (standard deviation of
        its log; 0, as published, for not at all), over what length, and the largest factor. See
        :func:`~prisma_sbi.simulator.road_with_traffic`.
    aggressiveness_shrinkage, typical_aggressiveness
        Share of the log distance to a typical driver that decoding takes from fitted values, and
        that driver; 0, as published, for fitted values as they are. See
        :func:`~prisma_sbi.simulator.shrunk_aggressiveness`.
    restlessness, restlessness_memory_s
        Largest relative wander of the power of decoded traces, and how long it lasts; 0, as
        published, for none. See :func:`~prisma_sbi.simulator.restless_power`.
    arrival_tolerance_m
        The trip ends, and the engine stops, this far before the end of the road.
    creep_speed_mps, creep_length_m
        Speed at a signal or stop sign, and the stretch of road over which it holds.
    elevation_smoothing_m
        Length of the window over which heights are averaged before they are differentiated.
    max_grade
        Slopes beyond this are taken for errors of the elevation model and clipped.
    aggressiveness_bounds, detour_bounds
        Domain of the two continuous descriptors.
    energy_scale, duration_scale, shape_scale
        Standard deviations ``sigma`` of the three residuals; weights are ``1/(2 sigma^2)``.
    energy_floor_j, duration_floor_s
        Smallest denominators of the relative residuals; a trip that recuperates as much as
        it spends has an energy near zero.
    activity_threshold
        ``theta``: power that counts as driving, as a fraction of the power span of the pool.
    power_span_w
        ``P``: the power span of the pool.
    n_place_bins, n_aggressiveness_bins, n_detour_bins
        Bins per coordinate and per continuous descriptor.
    """

    horizon_s: int = 500
    time_step_s: float = 1.0
    n_route_points: int = 256
    acceleration_ceiling_mps2: float = 2.0
    acceleration_fade_mps: float = field(default=0.0, metadata={ADDED_LATER: True})
    brake_fraction: float = 1.0
    control_gain_per_s: float = 0.7
    tank_efficiency: float = 0.30
    recuperation: float = 0.0
    idle_power_w_per_l: float = 2_000.0
    start_speed_share: float = 0.0
    end_speed_share: float = field(default=0.0, metadata={ADDED_LATER: True})
    end_traffic_power: float = field(default=0.0, metadata={ADDED_LATER: True})
    hybrid_share: float = field(default=0.0, metadata={ADDED_LATER: True})
    engine_on_w: float = field(default=2_000.0, metadata={ADDED_LATER: True})
    electric_efficiency: float = field(default=0.0, metadata={ADDED_LATER: True})
    electric_recuperation: float = field(default=0.0, metadata={ADDED_LATER: True})
    speed_wander: float = field(default=0.0, metadata={ADDED_LATER: True})
    speed_wander_length_m: float = field(default=175.0, metadata={ADDED_LATER: True})
    speed_wander_limit: float = field(default=1.15, metadata={ADDED_LATER: True})
    aggressiveness_shrinkage: float = field(default=0.0, metadata={ADDED_LATER: True})
    typical_aggressiveness: float = field(default=0.6, metadata={ADDED_LATER: True})
    restlessness: float = field(default=0.0, metadata={ADDED_LATER: True})
    restlessness_memory_s: float = field(default=5.0, metadata={ADDED_LATER: True})
    arrival_tolerance_m: float = 1.0
    creep_speed_mps: float = 3.0
    creep_length_m: float = 20.0
    elevation_smoothing_m: float = 150.0
    max_grade: float = 0.15
    aggressiveness_bounds: tuple[float, float] = (0.0, 1.0)
    detour_bounds: tuple[float, float] = (1.0, 2.5)
    energy_scale: float = 0.05
    duration_scale: float = 0.05
    shape_scale: float = 0.05
    energy_floor_j: float = 100_000.0
    duration_floor_s: float = 5.0
    activity_threshold: float = 0.02
    power_span_w: float = 100_000.0
    n_place_bins: int = 32
    n_aggressiveness_bins: int = 16
    n_detour_bins: int = 16

    def __post_init__(self) -> None:
        pairs = ("aggressiveness_bounds", "detour_bounds")
        for name in pairs:
            low, high = (float(edge) for edge in getattr(self, name))
            _validate.finite(**{f"{name}[0]": low, f"{name}[1]": high})
            if not low < high:
                raise ValueError(f"Expected {name} to rise; got {(low, high)!r}.")
            object.__setattr__(self, name, (low, high))
        may_be_zero = (
            "recuperation",
            "start_speed_share",
            "acceleration_fade_mps",
            "restlessness",
            "end_speed_share",
            "end_traffic_power",
            "hybrid_share",
            "electric_efficiency",
            "electric_recuperation",
            "speed_wander",
            "aggressiveness_shrinkage",
        )
        for item in fields(self):
            if item.name in pairs:
                continue
            value = getattr(self, item.name)
            _validate.finite(**{item.name: value})
            if item.name not in may_be_zero:
                _validate.positive(**{item.name: value})
        _validate.in_range(0.0, 2.0, restlessness=self.restlessness, speed_wander=self.speed_wander)
        _validate.in_range(0.0, 10.0, end_traffic_power=self.end_traffic_power)
        _validate.in_range(0.0, 1e3, acceleration_fade_mps=self.acceleration_fade_mps)
        _validate.in_range(
            0.0,
            1.0,
            recuperation=self.recuperation,
            aggressiveness_shrinkage=self.aggressiveness_shrinkage,
            typical_aggressiveness=self.typical_aggressiveness,
            start_speed_share=self.start_speed_share,
            end_speed_share=self.end_speed_share,
            hybrid_share=self.hybrid_share,
            tank_efficiency=self.tank_efficiency,
            electric_efficiency=self.electric_efficiency,
            electric_recuperation=self.electric_recuperation,
        )
        _validate.at_least(2, n_route_points=self.n_route_points)
        _validate.at_least(3, horizon_s=self.horizon_s)

    @property
    def n_times(self) -> int:
        """Samples in a trace."""
        return round(self.horizon_s / self.time_step_s)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "Constants":
        """One of :data:`PRESETS`, with changes; an unknown name raises ``ValueError``."""
        _validate.one_of(list(PRESETS), preset=name)
        return cls(**{**PRESETS[name], **changes})

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Constants":
        """Inverse of :meth:`to_dict`; an unknown name raises ``ValueError``.

        A key ``preset`` names the set of constants that the others change.
        """
        values = dict(values)
        name = values.pop("preset", "published")
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(
                f"Expected constants among {sorted(known)}; got {unknown}. "
                "Remove them, or use the version of prisma_sbi that wrote them."
            )
        known_values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return cls.preset(name, **known_values)
