"""The documentation as a site: ``python -m sphinx -q -W -c docs . build/site`` (extra ``docs``), offline.

The source folder is the repository, so that links between ``docs``, ``calibration`` and ``experiments`` are links.
What is made when the site is built (toctrees, parts, gallery, pages of linked files) is in :mod:`site_pages`.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "layout")]

from vftsim._version import __version__  # noqa: E402 - the one of this checkout

project = "vftsim"
author = "The vftsim maintainers"
project_copyright = author
version = release = __version__

root_doc = "docs/index"
include_patterns = ["docs/**.md", "calibration/**.md", "experiments/**.md", "CHANGELOG.md", "CONTRIBUTING.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "site_pages"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
highlight_language = "none"
suppress_warnings = ["myst.header"]  # protocols are kept as they were registered, with their headings
html_theme = "furo"
html_title = f"vftsim {version}"
html_copy_source = False
