"""Decoding: synthetic traces from a release and public inputs, and from nothing else."""

from prisma_sbi.decoding.decode import decode

__all__ = ["decode"]
