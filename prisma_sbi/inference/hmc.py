"""Hamiltonian Monte Carlo in lockstep: every chain of every trip takes the same steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from prisma_sbi import _validate

LogDensity = Callable[[Float[Array, " dim"]], tuple[Float[Array, ""], Any]]
"""From a position to its log density and anything worth keeping with a draw."""
Force = Callable[[Float[Array, " dim"]], Float[Array, " dim"]]
"""From a position to the direction in which the density rises, exact or not."""
_DIVERGENCE = 50.0
"""A trajectory that gains this much energy has left the posterior."""


@dataclass(frozen=True, kw_only=True)
class HmcSettings:
    """Length of the chains and of their trajectories.

    Attributes
    ----------
    n_chains, n_warmup, n_draws
        Chains a trip; transitions thrown away and kept, per chain.
    n_steps
        Leapfrog steps of a trajectory.
    trajectory
        Shortest and longest trajectory, in standard deviations times radians: a quarter turn
        makes the next draw independent of the last. Drawn anew for every transition, the
        same for all.
    target_acceptance
        Warm-up shortens the trajectories of a trip until this share is accepted.
    """

    n_chains: int = 4
    n_warmup: int = 20
    n_draws: int = 300
    n_steps: int = 4
    trajectory: tuple[float, float] = (1.5, 2.3)
    target_acceptance: float = 0.5

    def __post_init__(self) -> None:
        _validate.at_least(1, n_chains=self.n_chains, n_draws=self.n_draws, n_steps=self.n_steps)
        _validate.at_least(0, n_warmup=self.n_warmup)
        _validate.in_range(0.0, 1.0, target_acceptance=self.target_acceptance)
        if not 0.0 < self.trajectory[0] <= self.trajectory[1]:
            raise ValueError(f"Expected 0 < shortest <= longest; got {self.trajectory!r}.")


class HmcDraws(eqx.Module):
    """Draws of one trip.

    Attributes
    ----------
    position : (chain, draw, dim)
    kept
        What the log density returned beside its value, ``(chain, draw, ...)``.
    log_density : (chain, draw)
    acceptance : (chain, draw)
        Probability with which the proposal was accepted.
    diverging : (chain, draw)
        Whether the trajectory lost its energy.
    step_scale
        Factor on the trajectories after warm-up.
    """

    position: Float[Array, "*trip chain draw dim"]
    kept: Any
    log_density: Float[Array, "*trip chain draw"]
    acceptance: Float[Array, "*trip chain draw"]
    diverging: Bool[Array, "*trip chain draw"]
    step_scale: Float[Array, "*trip"]


class _State(eqx.Module):
    """Where the chains of a trip stand."""

    position: Float[Array, "chain dim"]
    log_density: Float[Array, " chain"]
    kept: Any


def lockstep_hmc(
    key: jax.Array,
    log_density: LogDensity,
    force: Force,
    start: Float[Array, "chain dim"],
    settings: HmcSettings,
) -> HmcDraws:
    r"""Sample one whitened posterior; jit it, and ``vmap`` it over trips.

    Parameters
    ----------
    key
        Typed key.
    log_density
        Target in coordinates in which it is about as wide as a standard normal.
    force
        Drives the trajectories. Need not be the gradient of the target: the leapfrog map
        preserves volume and reverses whatever the force, so accepting by the true energy
        leaves the target invariant [1]_. A cheap force buys long trajectories at the price
        of one evaluation of the target each.
    start : (chain, dim)
        First positions.
    settings
        Lengths.

    References
    ----------
    .. [1] Neal, MCMC using Hamiltonian dynamics, 2011, section 5.5.
       https://doi.org/10.1201/b10905-6
    """
    evaluate = jax.vmap(log_density)
    forces = jax.vmap(force)

    def propose(position, momentum, length):
        step = length / settings.n_steps
        momentum = momentum + 0.5 * step * forces(position)

        def leap(carry, _):
            position, momentum = carry
            position = position + step * momentum
            return (position, momentum + step * forces(position)), None

        (position, momentum), _ = lax.scan(leap, (position, momentum), length=settings.n_steps - 1)
        position = position + step * momentum
        return position, momentum + 0.5 * step * forces(position)

    def transition(state: _State, log_scale, key):
        push, pull, toss = jax.random.split(key, 3)
        dtype = state.position.dtype
        momentum = jax.random.normal(push, state.position.shape, dtype)
        low, high = settings.trajectory
        length = jax.random.uniform(pull, (), dtype, low, high) * jnp.exp(log_scale)
        position, momentum_after = propose(state.position, momentum, length)
        value, kept = evaluate(position)
        gain = (value - state.log_density) + 0.5 * jnp.sum(momentum**2 - momentum_after**2, axis=-1)
        gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
        acceptance = jnp.exp(jnp.minimum(gain, 0.0))
        accepted = jax.random.uniform(toss, gain.shape, dtype) < acceptance
        new = _State(position, value, kept)
        state = jax.tree.map(
            lambda a, b: jnp.where(accepted.reshape(-1, *[1] * (a.ndim - 1)), a, b), new, state
        )
        return state, acceptance, gain < -_DIVERGENCE

    def warm(carry, now):
        state, log_scale = carry
        index, key = now
        state, acceptance, _ = transition(state, log_scale, key)
        error = jnp.mean(acceptance) - settings.target_acceptance
        log_scale = jnp.clip(log_scale + error / jnp.sqrt(1.0 + index), -1.0, 0.0)
        return (state, log_scale), None

    def draw(carry, key):
        state, log_scale = carry
        state, acceptance, diverging = transition(state, log_scale, key)
        return (state, log_scale), (state, acceptance, diverging)

    warm_key, draw_key = jax.random.split(key)
    state = _State(start, *evaluate(start))
    carry = (state, jnp.zeros((), start.dtype))
    steps = (jnp.arange(settings.n_warmup), jax.random.split(warm_key, settings.n_warmup))
    carry, _ = lax.scan(warm, carry, steps)
    carry, (states, acceptance, diverging) = lax.scan(
        draw, carry, jax.random.split(draw_key, settings.n_draws)
    )
    by_chain = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), states)
    return HmcDraws(
        position=by_chain.position,
        kept=by_chain.kept,
        log_density=by_chain.log_density,
        acceptance=acceptance.T,
        diverging=diverging.T,
        step_scale=jnp.exp(carry[1]),
    )
