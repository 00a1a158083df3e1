"""The run-time type checker of the tests, by name, as the import hook wants it."""

from beartype import BeartypeConf, beartype

# As everywhere in Python's typing, an int may stand where a float is asked for.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
