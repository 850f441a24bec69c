"""The store of a study on disk: finished runs, one writer, and a manifest of what made them."""
