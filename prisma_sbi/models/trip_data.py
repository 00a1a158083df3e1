"""What a model of one trip is conditioned on."""

from typing import Any

import equinox as eqx

from prisma_sbi.simulator.driver import Road


class TripData(eqx.Module):
    """The road of one trip and what its likelihood keeps of the observed trace.

    With a leading axis on every leaf, of many trips: ``jax.vmap`` over it.

    Attributes
    ----------
    road
        Profile of the trip.
    observed
        From :meth:`Likelihood.observe <prisma_sbi.models.Likelihood.observe>`; None for
        predictions without data.
    """

    road: Road
    observed: Any = None
