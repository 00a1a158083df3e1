"""No-U-turn sampling of one data set: any NumPyro model, a target in a box, a whitened density."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpyro.infer
from jaxtyping import Array, Float

from prisma_sbi import _validate
from prisma_sbi._optional import optional_import
from prisma_sbi.inference.box import Box
from prisma_sbi.inference.hmc import Force, LogDensity
from prisma_sbi.inference.target import Target


@dataclass(frozen=True, kw_only=True)
class NutsSettings:
    """Length of the chains.

    Attributes
    ----------
    n_chains, n_warmup, n_draws
        Chains; transitions thrown away and kept, per chain.
    max_tree_depth
        Trajectories double this many times at most.
    target_acceptance
        The step size is tuned to it.
    """

    n_chains: int = 4
    n_warmup: int = 500
    n_draws: int = 500
    max_tree_depth: int = 5
    target_acceptance: float = 0.8

    def __post_init__(self) -> None:
        _validate.at_least(
            1,
            n_chains=self.n_chains,
            n_warmup=self.n_warmup,
            n_draws=self.n_draws,
            max_tree_depth=self.max_tree_depth,
        )
        if not 0.0 < self.target_acceptance < 1.0:
            raise ValueError(f"Expected 0 < target_acceptance < 1; got {self.target_acceptance!r}.")


@dataclass(frozen=True, kw_only=True)
class WhitenedNutsSettings:
    """Length of chains in coordinates in which the posterior is nearly a standard normal.

    Attributes
    ----------
    n_warmup, n_draws
        Transitions thrown away and kept, per chain. Nothing is tuned in the first ones.
    step_size
        Leapfrog step, in standard deviations.
    max_tree_depth
        Trajectories double this many times at most.
    """

    n_warmup: int = 50
    n_draws: int = 1_000
    step_size: float = 0.8
    max_tree_depth: int = 3

    def __post_init__(self) -> None:
        _validate.at_least(
            1, n_warmup=self.n_warmup, n_draws=self.n_draws, max_tree_depth=self.max_tree_depth
        )
        if not self.step_size > 0.0:
            raise ValueError(f"Expected step_size > 0; got {self.step_size!r}.")


def numpyro_nuts(
    model: Callable[..., Any], settings: NutsSettings
) -> Callable[[jax.Array, Any], tuple[dict[str, Any], dict[str, Any]]]:
    """Build a sampler of one NumPyro model that is compiled once for data of one shape.

    Parameters
    ----------
    model
        NumPyro model of one argument.
    settings
        Lengths.

    Returns
    -------
    sample
        From key and data to samples by site and statistics, both ``(chain, draw, ...)``.
    """

    # NumPyro's own cache misses its initialization, so the whole run is compiled as one.
    @jax.jit
    def sample(key: jax.Array, data: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        kernel = numpyro.infer.NUTS(
            model,
            dense_mass=True,
            max_tree_depth=settings.max_tree_depth,
            target_accept_prob=settings.target_acceptance,
            init_strategy=numpyro.infer.init_to_median(num_samples=1),
            forward_mode_differentiation=False,
        )
        sampler = numpyro.infer.MCMC(
            kernel,
            num_warmup=settings.n_warmup,
            num_samples=settings.n_draws,
            num_chains=settings.n_chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        sampler.run(key, data, extra_fields=("accept_prob", "diverging", "num_steps"))
        return (
            sampler.get_samples(group_by_chain=True),
            sampler.get_extra_fields(group_by_chain=True),
        )

    return sample


def plane_nuts(
    key: jax.Array,
    target: Target,
    box: Box,
    start: Float[Array, "start 2"],
    settings: NutsSettings,
) -> tuple[Float[Array, "chain draw 2"], dict[str, Array]]:
    """Sample one target by BlackJAX, with a dense mass matrix found by window adaptation.

    Parameters
    ----------
    key
        Typed key.
    target
        Posterior of one trip; choices are summed out.
    box
        Domain of the point.
    start : (start, 2)
        Points that are spread about as the posterior is; they whiten the plane, and the first
        of them begin the chains.
    settings
        Lengths.

    Returns
    -------
    point : (chain, draw, 2)
    statistics
        ``acceptance``, ``diverging`` and ``n_steps``, each ``(chain, draw)``.
    """
    blackjax: Any = optional_import("blackjax", extra="bayes")

    plane = box.outside(start)
    center = jnp.mean(plane, axis=0)
    spread = jnp.linalg.cholesky(jnp.cov(plane.T) + 1e-6 * jnp.eye(2, dtype=plane.dtype))

    def density(whitened: Float[Array, "2"]) -> Float[Array, ""]:
        position = center + spread @ whitened
        weights = target.log_weights(box.inside(position))
        return jax.nn.logsumexp(weights) + box.log_jacobian(position)

    log_density = with_forward_gradient(density)

    def chain(key, position):
        warm_key, key = jax.random.split(key)
        adaptation = blackjax.window_adaptation(
            blackjax.nuts,
            log_density,
            is_mass_matrix_diagonal=False,
            target_acceptance_rate=settings.target_acceptance,
            max_num_doublings=settings.max_tree_depth,
        )
        (state, parameters), _ = adaptation.run(warm_key, position, settings.n_warmup)
        kernel = blackjax.nuts(log_density, **parameters)

        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (
                state.position,
                info.acceptance_rate,
                info.is_divergent,
                info.num_integration_steps,
            )

        _, kept = jax.lax.scan(step, state, jax.random.split(key, settings.n_draws))
        return kept

    first = plane[: settings.n_chains] - center
    first = jax.scipy.linalg.solve_triangular(spread, first.T, lower=True).T
    keys = jax.random.split(key, settings.n_chains)
    whitened, acceptance, diverging, n_steps = jax.vmap(chain)(keys, first)
    return box.inside(center + whitened @ spread.T), {
        "acceptance": acceptance,
        "diverging": diverging,
        "n_steps": jnp.asarray(n_steps),
    }


def whitened_nuts(
    key: jax.Array,
    log_density: LogDensity,
    force: Force,
    start: Float[Array, "chain dim"],
    settings: WhitenedNutsSettings,
) -> tuple[Float[Array, "chain draw dim"], dict[str, Array]]:
    """Sample one whitened posterior by BlackJAX; a second opinion on chains in lockstep.

    Parameters
    ----------
    key, log_density, force, start
        As for :func:`~prisma_sbi.inference.lockstep_hmc`. Here too the force need not be the
        gradient: trees are built from trajectories that preserve volume and can be reversed,
        and draws are weighed by the true energy.
    settings
        Lengths, and the step size, which is not tuned: errors come from what the map got
        wrong, and shorter steps do not mend that.

    Returns
    -------
    position : (chain, draw, dim)
    statistics
        ``acceptance``, ``diverging`` and ``n_steps``, each ``(chain, draw)``.
    """
    blackjax: Any = optional_import("blackjax", extra="bayes")

    @jax.custom_vjp
    def density(position):
        return log_density(position)[0]

    def with_force(position):
        return density(position), force(position)

    density.defvjp(with_force, lambda force_there, incoming: (incoming * force_there,))
    kernel = blackjax.nuts(
        density,
        step_size=settings.step_size,
        inverse_mass_matrix=jnp.ones(start.shape[-1], start.dtype),
        max_num_doublings=settings.max_tree_depth,
    )

    def chain(key, position):
        def step(state, key):
            state, info = kernel.step(key, state)
            facts = info.acceptance_rate, info.is_divergent, info.num_integration_steps
            return state, (state.position, *facts)

        keys = jax.random.split(key, settings.n_warmup + settings.n_draws)
        return jax.lax.scan(step, kernel.init(position), keys)[1]

    found = jax.vmap(chain)(jax.random.split(key, start.shape[0]), start)
    position, acceptance, diverging, n_steps = (kept[:, settings.n_warmup :] for kept in found)
    return position, {"acceptance": acceptance, "diverging": diverging, "n_steps": n_steps}


def with_forward_gradient(
    function: Callable[[Float[Array, " dim"]], Float[Array, ""]],
) -> Callable[[Float[Array, " dim"]], Float[Array, ""]]:
    """The same function, whose gradient is computed in forward mode.

    With few inputs and a long loop inside, reverse mode spends its time on storing the loop.
    """

    @jax.custom_vjp
    def wrapped(position):
        return function(position)

    def forward(position):
        def directional(tangent):
            return jax.jvp(function, (position,), (tangent,))

        eye = jnp.eye(position.shape[0], dtype=position.dtype)
        return jax.vmap(directional, out_axes=(None, 0))(eye)

    wrapped.defvjp(forward, lambda gradient, incoming: (incoming * gradient,))
    return wrapped
