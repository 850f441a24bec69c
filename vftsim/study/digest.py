"""One hash for equal data."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def sha256_of(data: Any) -> str:
    """Return the SHA-256 of plain data, whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
