"""Fitted drivers differ more than drivers do."""

import numpy as np
from jaxtyping import Float

from prisma_sbi.region.constants import Constants


def shrunk_aggressiveness(
    aggressiveness: Float[np.ndarray, " trip"], constants: Constants
) -> Float[np.ndarray, " trip"]:
    r"""Aggressiveness to decode with: nearer to that of a typical driver.

    Parameters
    ----------
    aggressiveness : (trip,)
        Fitted, or synthesized from fitted ones.
    constants
        ``aggressiveness_shrinkage`` and ``typical_aggressiveness``; without shrinkage the values
        come back as they are.

    Returns
    -------
    aggressiveness : (trip,)
        :math:`a^{1 - s} m^s` with the shrinkage :math:`s` and the typical value :math:`m`; the
        order of drivers stays.

    Notes
    -----
    A best fit on the empty road has one number for all that made a trip brisk or slow, traffic
    and chance included, so fits scatter more than drivers do, as estimates scatter more than what
    they estimate [1]_. A decoded trip meets traffic and chance again. With the fitted value as it
    is they would count twice.

    References
    ----------
    .. [1] Efron and Morris, Data analysis using Stein's estimator and its generalizations, 1975.
       https://doi.org/10.1080/01621459.1975.10479864
    """
    shrinkage = constants.aggressiveness_shrinkage
    if shrinkage == 0.0:
        return aggressiveness
    # A driver who never moves stays one.
    return aggressiveness ** (1.0 - shrinkage) * constants.typical_aggressiveness**shrinkage
