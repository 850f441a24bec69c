"""Calibration and validation against measured data.  Called, the package is the function ``vftsim.calibrate``."""

import vftsim
from vftsim._callable import as_function

as_function(__name__, vftsim.calibrate)
