"""Errors of the package: each is a standard exception with a name to catch."""


class InputDataError(ValueError):
    """A file or table cannot be used as a whole; the message says which and why."""


class RegionMismatchError(ValueError):
    """Artefacts that were derived from two different regions were mixed."""


class BudgetError(ValueError):
    """A privacy spend is impossible: not positive, not finite, or more than is left."""


class GuaranteeError(ValueError):
    """A release is not what the caller takes it for, for instance one without a guarantee."""
