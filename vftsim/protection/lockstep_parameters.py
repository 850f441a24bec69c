"""Parameters of VMware vLockstep; see :mod:`vftsim.platform.protection._lockstep_parameters`."""

from vftsim.platform.protection._lockstep_parameters import LockstepFields, ReprotectionSpec, ThrottleSpec

__all__ = ["LockstepFields", "ReprotectionSpec", "ThrottleSpec"]
