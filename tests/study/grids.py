"""Grids with all their points at once, as tests want them."""

from typing import Any

from vftsim.study.designs.sweep_grid import Grid, plan_grid


def make_grid(*arguments: Any) -> Grid:
    """Return the points of a sweep, all of them at once; see :func:`.plan_grid`."""
    return plan_grid(*arguments).grid()
