"""The published loss written down plainly (method.md, section 4), without JAX."""

import numpy as np


def published_loss(simulated_w, observed_w, constants):
    """Weighted squares of the relative misfits of energy, duration and cumulative curve."""
    c, dt = constants, constants.time_step_s
    p, q = np.asarray(observed_w, float), np.asarray(simulated_w, float)
    weight_energy, weight_duration, weight_shape = (
        1.0 / (2.0 * sigma**2) for sigma in (c.energy_scale, c.duration_scale, c.shape_scale)
    )
    width = c.activity_threshold * c.power_span_w
    energy_p, energy_q = dt * p.sum(), dt * q.sum()
    duration_p, duration_q = (dt * (1.0 - np.exp(-((x / width) ** 2))).sum() for x in (p, q))
    share_p, share_q = dt * np.cumsum(p) / energy_p, dt * np.cumsum(q) / energy_q
    return (
        weight_energy * ((energy_q - energy_p) / energy_p) ** 2
        + weight_duration * ((duration_q - duration_p) / duration_p) ** 2
        + weight_shape / len(p) * np.sum((share_q - share_p) ** 2)
    )
