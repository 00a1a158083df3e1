"""Scores that the paper reports for another data set, to be read beside one's own."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Published(NamedTuple):
    """Four scores of Table 2 of the paper [1]_.

    Measured on eVED at epsilon = 0.5, with 10,000 trips to train, 2,000 held out, mean of 15
    seeds. Precision and recall are those on raw features.

    References
    ----------
    .. [1] Zeiseweis et al., PRISMA, 2026. https://doi.org/10.48550/arXiv.2610.35521
    """

    acf_x_floor: float
    fid_x_floor: float
    precision_raw: float
    recall_raw: float


PUBLISHED_EPSILON = 0.5

BASELINES: Mapping[str, tuple[Published, Published]] = MappingProxyType(
    {
        "B0": (Published(81.1, 11.25, 1.000, 0.340), Published(82.3, 10.09, 1.000, 0.401)),
        "TimeGAN": (Published(61.2, 4.59, 0.982, 0.915), Published(22.2, 2.94, 0.981, 0.502)),
        "GRU": (Published(14.7, 12.19, 0.981, 0.781), Published(17.2, 6.60, 0.980, 0.850)),
        "LSTM": (Published(15.5, 6.04, 0.975, 0.848), Published(15.9, 5.06, 0.981, 0.855)),
        "DiffWave": (Published(24.3, 4.53, 0.987, 0.551), Published(26.0, 3.98, 0.983, 0.758)),
        "DDPM": (Published(33.2, 850.7, 0.989, 0.996), Published(2.96, 1.33, 0.985, 0.985)),
        "Flow Matching": (Published(15.6, 2.43, 0.984, 0.844), Published(6.93, 0.77, 0.981, 0.982)),
        "CSDI": (Published(26.2, 10.28, 0.999, 0.573), Published(18.5, 2.79, 0.985, 0.980)),
    }
)
"""Model -> its published scores with privacy and without; this package has none of them."""

PRISMA_AIM = Published(15.88, 1.92, 0.999, 0.999), Published(14.50, 1.99, 0.999, 0.999)
PRISMA_NO_MECHANISM = Published(12.72, 1.99, 0.999, 0.999)
PRISMA_UNFITTED = Published(25.27, 2.27, 0.999, 0.999), Published(23.56, 2.64, 0.999, 0.999)
