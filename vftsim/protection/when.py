"""Instants of a run; see :mod:`vftsim.platform.protection.when`."""

from vftsim.platform.protection.when import Instant, When, WhenText

__all__ = ["Instant", "When", "WhenText"]
