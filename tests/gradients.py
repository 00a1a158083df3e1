"""Derivatives against finite differences, for functions with kinks."""

import jax
import jax.numpy as jnp
import numpy as np


def compare_with_differences(f, at, *, step=1e-6, smooth=1e-4, close=1e-3):
    """Compare each column of the forward Jacobian with central differences.

    Where two step sizes disagree there is a kink in between, and no derivative to compare with.
    Returns per coordinate whether it was compared; the caller requires that most were.
    """
    exact = np.atleast_2d(np.asarray(jax.jacfwd(f)(at)))

    def differences(h):
        offsets = h * jnp.eye(at.shape[0], dtype=at.dtype)
        ahead, behind = jax.vmap(f)(at + offsets), jax.vmap(f)(at - offsets)
        return np.asarray((ahead - behind) / (2 * h)).reshape(at.shape[0], -1)

    coarse, fine = differences(step), differences(step / 4)
    compared = []
    for column, (one, other) in enumerate(zip(coarse, fine, strict=True)):
        scale = np.linalg.norm(other) + 1e-9
        compared.append(np.linalg.norm(one - other) < smooth * scale)
        if compared[-1]:
            assert np.linalg.norm(exact[:, column] - other) < close * scale
    return compared
