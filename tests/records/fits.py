"""The script that fits parameters of records, as a module."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FILE = Path(__file__).parents[2] / "experiments" / "record-fits" / "fit.py"

_spec = spec_from_file_location("record_fits", _FILE)
fit = module_from_spec(_spec)
sys.modules["record_fits"] = fit  # where pydantic looks its annotations up
_spec.loader.exec_module(fit)
