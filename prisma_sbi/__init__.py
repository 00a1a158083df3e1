"""Simulation-based inference and private synthesis of in-car power traces."""

__version__ = "0.1.0"
