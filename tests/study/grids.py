"""Grids with all their points at once, as tests want them."""

from typing import Any

from vftsim.study.designs.sweep_grid import Grid, plan_grid


def make_grid(*arguments: Any) -> Grid:
    """Return the grid of a sweep with its points made; see :func:`.plan_grid`."""
    grid = plan_grid(*arguments)
    assert grid.points
    return grid
