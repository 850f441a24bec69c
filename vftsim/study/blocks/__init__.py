"""Results as blocks: what each kind of study says of itself, for the terminal, a page and a notebook."""
