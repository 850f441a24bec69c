"""Studies: a model run many times, what comes out of it.  Called, the package is the function ``vftsim.study``."""

import vftsim
from vftsim._callable import as_function

as_function(__name__, vftsim.study)
