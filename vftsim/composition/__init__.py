"""A model as a composition: what there is, what runs on it, what drives it, what protects it."""
