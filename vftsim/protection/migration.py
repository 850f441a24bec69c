"""Live migration; see :mod:`vftsim.platform.protection.migration`."""

from vftsim.platform.protection.migration import PrecopyPlan, plan_precopy

__all__ = ["PrecopyPlan", "plan_precopy"]
