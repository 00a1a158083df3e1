"""What prior and likelihood contribute to a posterior: power scaling, from draws alone."""

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from prisma_sbi._optional import optional_import

THRESHOLD = 0.05
"""Sensitivity from which on a part of the model counts: the one of the authors."""
_COMPONENTS = ("prior", "likelihood")
_TIE_NATS = 1e-6
"""Draws of a posterior of few points repeat; the fit of the tail needs them apart, if hardly."""


class PriorRole(StrEnum):
    """What a prior does to one parameter of one trip."""

    OK = "ok"
    """The likelihood decides."""
    CONFLICT = "prior-data conflict"
    """Both pull: the posterior is a compromise between two opinions."""
    STRONG_PRIOR = "strong prior, weak likelihood"
    """The prior decides: the trace says little."""


def power_scaling(
    draws: Mapping[str, Float[np.ndarray, "trip draw"]],
    log_prior: Float[np.ndarray, "trip draw"],
    log_likelihood: Float[np.ndarray, "trip draw"],
    *,
    threshold: float = THRESHOLD,
) -> xr.Dataset:
    r"""How much the posterior of each parameter moves if prior or likelihood is raised to a power.

    Parameters
    ----------
    draws
        By parameter, from the posteriors of many trips.
    log_prior, log_likelihood : (trip, draw)
        Of the same draws; constants may be missing from both.
    threshold
        Sensitivity from which on a part counts.

    Returns
    -------
    xarray.Dataset
        ``sensitivity (trip, parameter, component)`` to ``prior`` and ``likelihood``, and
        ``role (trip, parameter)``, a :class:`PriorRole`.

    Notes
    -----
    Posteriors proportional to :math:`p(\theta)^\alpha p(y \mid \theta)`, and to
    :math:`p(\theta)\,p(y \mid \theta)^\alpha`, are reached from the draws by importance weights,
    smoothed in the tail. The sensitivity is the rate, by :math:`\log_2 \alpha` at
    :math:`\alpha = 1`, at which the cumulative Jensen-Shannon distance to the posterior grows
    [1]_; ArviZ computes it. A shift of a normal posterior by a quarter of its standard deviation
    per doubling is about 0.05. A flat prior has sensitivity 0 whatever it says about where
    the bounds should be.

    References
    ----------
    .. [1] Kallioinen, Paananen, Bürkner and Vehtari, Detecting and diagnosing prior and likelihood
       sensitivity with power-scaling, 2023. https://doi.org/10.1007/s11222-023-10366-5
    """
    n_trips = len(log_prior)
    found = np.zeros((n_trips, len(draws), len(_COMPONENTS)))
    for trip in range(n_trips):
        for column, part in enumerate((log_prior, log_likelihood)):
            one = {name: np.asarray(values[trip], np.float64) for name, values in draws.items()}
            found[trip, :, column] = _sensitivity(one, np.asarray(part[trip], np.float64))
    prior, likelihood = found[..., 0] >= threshold, found[..., 1] >= threshold
    role = np.select(
        [prior & likelihood, prior], [PriorRole.CONFLICT.value, PriorRole.STRONG_PRIOR.value],
        PriorRole.OK.value,
    )  # fmt: skip
    return xr.Dataset(
        {
            "sensitivity": (("trip", "parameter", "component"), found),
            "role": (("trip", "parameter"), role),
        },
        coords={"parameter": list(draws), "component": list(_COMPONENTS)},
        attrs={"threshold": threshold},
    )


def _sensitivity(draws: Mapping[str, np.ndarray], log_part: np.ndarray) -> list[float]:
    """Sensitivity of every parameter of one trip to one part of its posterior."""
    result = dict.fromkeys(draws, 0.0)
    # A parameter that does not vary cannot move, and a part that does not cannot move it.
    moving = {name: values[None] for name, values in draws.items() if np.ptp(values) > 0.0}
    if moving and np.ptp(log_part) > 0.0:
        arviz: Any = optional_import("arviz", extra="bayes")
        log_part = log_part + np.linspace(0.0, _TIE_NATS, log_part.size)
        tree = xr.DataTree.from_dict(
            {
                "posterior": xr.Dataset({k: (("chain", "draw"), v) for k, v in moving.items()}),
                "log_prior": xr.Dataset({"part": (("chain", "draw"), log_part[None])}),
            }
        )
        logging.getLogger("arviz_stats").setLevel(logging.ERROR)
        sensitivity = arviz.psense(tree, group="prior")
        result |= {name: float(sensitivity[name]) for name in moving}
    return list(result.values())
