"""Protection mechanisms: what keeps a service alive when its host fails, and the faults that test it."""
