"""What a user looks at: results as text, pages and plots.  Called, the package is the function ``vftsim.report``."""

import vftsim
from vftsim._callable import as_function

as_function(__name__, vftsim.report)
