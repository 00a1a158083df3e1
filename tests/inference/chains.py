"""Effective sample sizes, and draws that are about independent."""

import numpy as np
from arviz_stats.base.array import array_stats


def effective(draws) -> float:
    """Bulk effective sample size of (chain, draw)."""
    found = array_stats.ess(np.asarray(draws, float), chain_axis=0, draw_axis=1)
    return float(np.asarray(found))


def thinned(draws):
    """About independent draws of one coordinate."""
    every = max(1, int(np.ceil(draws.size / effective(draws))))
    return np.asarray(draws, float)[:, ::every].ravel()
