"""Figure of where real and synthetic traces lie in a common map of two dimensions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from prisma_sbi import _validate
from prisma_sbi._errors import InputDataError
from prisma_sbi._optional import optional_import
from prisma_sbi.evaluation.plot_style import (
    REAL_COLOR,
    figure_style,
    new_figure,
    plain,
    synthetic_color,
)
from prisma_sbi.evaluation.population import Traces, power_array, require_comparable

if TYPE_CHECKING:
    import matplotlib.figure

CONTOUR_SHARES = (0.9, 0.6, 0.3)
"""Shares of the traces that the contours hold, outermost first."""
N_COMPONENTS = 30
"""Principal components that enter; they keep distances and make neighbors cheap to find."""
BANDWIDTH = 0.2
"""Of the density, in standard deviations of the map; the rule of Scott would blur groups."""
N_GRID = 110
MINIMUM_TRACES = 8
MAXIMUM_COLUMNS = 3
_MARGIN = 0.08


def tsne_map(
    populations: Mapping[str, Traces],
    *,
    n_traces: int = 1000,
    perplexity: float = 30.0,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Place traces of several populations in one map by t-SNE.

    Parameters
    ----------
    populations
        Name -> traces, all over the same time steps.
    n_traces
        Random traces of each population that enter; all where there are fewer.
    perplexity
        Effective number of neighbors, lowered to a third of the traces where they are few.
    seed
        Of the choice of traces and of the map.

    Returns
    -------
    places
        Name -> ``(trace, 2)``. Directions and distances between groups mean nothing; which
        traces are neighbors does.

    Raises
    ------
    InputDataError
        If populations cannot be compared, fewer than 8 traces enter, or all are equal.

    References
    ----------
    .. [1] Van der Maaten and Hinton, Visualizing data using t-SNE, Journal of Machine
       Learning Research 9, 2008. https://www.jmlr.org/papers/v9/vandermaaten08a.html
    """
    _validate.at_least(1, n_traces=n_traces)
    _validate.positive(perplexity=perplexity)
    first, *others = populations.values()
    for traces in others:
        require_comparable(first, traces)
    generator = np.random.default_rng(seed)
    chosen = {
        name: _subsample(power_array(traces, name=name), n_traces, generator)
        for name, traces in populations.items()
    }
    components = _principal_components(np.concatenate(list(chosen.values())))
    manifold = optional_import("sklearn.manifold", extra="plots")
    limits = optional_import("threadpoolctl", extra="plots").threadpool_limits
    with limits(1):  # sums over threads come in any order, and the map amplifies rounding
        places = manifold.TSNE(
            perplexity=min(perplexity, (len(components) - 1) / 3.0),
            init=1e-4 * components[:, :2] / components[:, 0].std(),
            learning_rate="auto",
            random_state=seed,
        ).fit_transform(components)
    ends = np.cumsum([len(power_w) for power_w in chosen.values()])
    return dict(zip(chosen, np.split(places.astype(np.float64), ends[:-1]), strict=True))


def plot_tsne(
    real: Traces,
    synthetic: Mapping[str, Traces],
    *,
    n_traces: int = 1000,
    perplexity: float = 30.0,
    seed: int = 0,
) -> "matplotlib.figure.Figure":
    """Density of real and synthetic traces in a common t-SNE map, as contours.

    Parameters
    ----------
    real
        Real population.
    synthetic
        Name -> synthetic population; each gets a panel of its own over the real one.
    n_traces, perplexity, seed
        As in :func:`tsne_map`.

    Returns
    -------
    figure
        One map of all populations together. Contours enclose the densest regions with 30,
        60 and 90 % of the traces: filled for the real ones, lines for the others. It
        is made from private traces and is no part of a release.

    Raises
    ------
    InputDataError
        As in :func:`tsne_map`.
    ValueError
        If there is no synthetic population.
    """
    if not synthetic:
        raise ValueError("Expected at least one synthetic population; got none. Pass one.")
    keys = ["", *synthetic]  # a synthetic population may be called "real"
    places = tsne_map(
        dict(zip(keys, [real, *synthetic.values()], strict=True)),
        n_traces=n_traces,
        perplexity=perplexity,
        seed=seed,
    )
    every = np.concatenate(list(places.values()))
    grid = _grid(every)
    width = BANDWIDTH * float(np.sqrt(every.var(axis=0).mean()))
    density = {key: _density(points, grid, width) for key, points in places.items()}
    flatness = float(np.ptp(grid[1]) / np.ptp(grid[0]))
    n_columns = min(MAXIMUM_COLUMNS, len(synthetic))
    n_rows = -(-len(synthetic) // n_columns)
    with figure_style():
        figure = new_figure(
            width_in=0.6 + 3.3 * n_columns, height_in=0.9 + (0.4 + 3.2 * flatness) * n_rows
        )
        axes = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
        for spare in axes[len(synthetic) :]:
            spare.remove()
        for number, (axis, label) in enumerate(zip(axes, synthetic, strict=False)):
            _draw_density(axis, grid, density[""], color=REAL_COLOR, filled=True)
            _draw_density(axis, grid, density[label], color=synthetic_color(number), filled=False)
            axis.set_title(plain(label))
            axis.set_aspect("equal")
            axis.grid(visible=False)
            axis.set_xticks([])
            axis.set_yticks([])
            axis.spines[["left", "bottom"]].set_visible(False)
        used = sorted({len(points) for points in places.values()})
        counts = f"{used[0]:,}" if len(used) == 1 else f"{used[0]:,} to {used[-1]:,}"
        figure.suptitle(f"t-SNE of {counts} random traces each")
        figure.supxlabel(
            "filled: real, lines: synthetic; contours hold 30, 60 and 90 % of the traces",
            fontsize=9.5,
        )
    return figure


def _subsample(power_w: np.ndarray, n_traces: int, generator: np.random.Generator) -> np.ndarray:
    """Random traces without repetition; all of them where there are no more."""
    if len(power_w) <= n_traces:
        return power_w
    return power_w[generator.choice(len(power_w), n_traces, replace=False)]


def _principal_components(power_w: np.ndarray) -> np.ndarray:
    """Scores ``(trace, component)`` on the first principal components, largest first."""
    if len(power_w) < MINIMUM_TRACES:
        raise InputDataError(
            f"Expected at least {MINIMUM_TRACES} traces for a map of neighbors; got "
            f"{len(power_w)}. Pass more."
        )
    centered = power_w - power_w.mean(axis=0)
    vectors, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    if not sizes[0] > 0.0:
        raise InputDataError(
            "Expected traces that differ for a map of neighbors; got equal ones. "
            "Leave this figure out."
        )
    scores = vectors * sizes
    # The sign of a component is arbitrary and may change with the linear algebra library.
    largest = np.abs(scores).argmax(axis=0)
    signs = np.sign(scores[largest, np.arange(scores.shape[1])])
    return (scores * np.where(signs == 0.0, 1.0, signs))[:, :N_COMPONENTS]


def _grid(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of a grid that covers all points with a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    margin = _MARGIN * float((high - low).max())
    across, up = np.linspace(low - margin, high + margin, N_GRID).T
    return across, up


def _density(points: np.ndarray, grid: tuple[np.ndarray, np.ndarray], width: float) -> np.ndarray:
    """Kernel density on the grid ``(up, across)``, of total mass 1.

    The kernel is round, Gaussian, and as wide for every population, so that contours compare.
    """
    across, up = (
        np.exp(-0.5 * ((line[:, None] - at) / width) ** 2)
        for line, at in zip(grid, points.T, strict=True)
    )
    density = up @ across.T
    return density / density.sum()


def contour_levels(density: np.ndarray, shares: tuple[float, ...]) -> list[float]:
    """Levels above which lie the densest cells that hold these shares of the mass.

    Parameters
    ----------
    density
        Mass per cell.
    shares
        Each between 0 and 1, largest first.

    Returns
    -------
    levels
        One per share, not falling.
    """
    falling = np.sort(density.ravel())[::-1]
    held = np.cumsum(falling) / falling.sum()
    return [float(falling[min(np.searchsorted(held, share), len(held) - 1)]) for share in shares]


def _draw_density(
    axis: Any, grid: tuple[np.ndarray, np.ndarray], density: np.ndarray, *, color: str, filled: bool
) -> None:
    """Contours of one population."""
    levels = sorted(set(contour_levels(density, CONTOUR_SHARES)))
    if filled:
        for level in levels:
            axis.contourf(*grid, density, levels=[level, np.inf], colors=[color], alpha=0.2)
    else:
        axis.contour(*grid, density, levels=levels, colors=[color], linewidths=1.3)
