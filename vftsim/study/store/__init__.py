"""What a study keeps on disk: finished runs, one writer, and a manifest of what made them."""
