"""Maximum a posteriori by stochastic variational inference with a point mass, annealed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.infer
import numpyro.optim
from jax import lax
from jaxtyping import Array, Float
from numpyro.infer.autoguide import AutoDelta

from prisma_sbi import _validate


@dataclass(frozen=True, kw_only=True)
class SviSettings:
    """Length and temperature of the descent.

    Attributes
    ----------
    n_steps
        Steps of Adam.
    step_size
        Of Adam.
    temperature
        First and last temperature of the relaxation; geometric between them.
    """

    n_steps: int = 300
    step_size: float = 0.05
    temperature: tuple[float, float] = (1.0, 0.1)

    def __post_init__(self) -> None:
        _validate.at_least(1, n_steps=self.n_steps)
        _validate.positive(step_size=self.step_size)
        if not all(each > 0.0 for each in self.temperature):
            raise ValueError(f"Expected temperatures > 0; got {self.temperature!r}.")


def svi_map(
    key: jax.Array, model: Callable[..., None], data: Any, settings: SviSettings
) -> tuple[dict[str, Array], Float[Array, " trip"]]:
    """Point estimates of many data sets under one NumPyro model; jit it.

    Parameters
    ----------
    key
        Typed key; shared by all data sets, since a point mass draws nothing.
    model
        NumPyro model of data and temperature.
    data
        Pytree of arrays with a leading trip axis.
    settings
        Length and temperature.

    Returns
    -------
    values
        Estimates by latent site, with a leading trip axis.
    loss : (trip,)
        Minus the log joint density at the last temperature.

    Notes
    -----
    All data sets start from the medians of the prior and take the same steps, each with its
    own gradient.
    """
    guide = AutoDelta(model, init_loc_fn=numpyro.infer.init_to_median(num_samples=15))
    svi = numpyro.infer.SVI(
        model, guide, numpyro.optim.Adam(settings.step_size), numpyro.infer.Trace_ELBO()
    )
    first, last = settings.temperature
    schedule = first * (last / first) ** jnp.linspace(0.0, 1.0, settings.n_steps)
    state = jax.vmap(lambda one: svi.init(key, one, schedule[0]))(data)

    def step(state, temperature):
        return jax.vmap(lambda s, one: svi.update(s, one, temperature))(state, data)

    state, losses = lax.scan(step, state, schedule)
    values = jax.vmap(svi.get_params)(state)
    suffix = "_auto_loc"
    return {name.removesuffix(suffix): value for name, value in values.items()}, losses[-1]
