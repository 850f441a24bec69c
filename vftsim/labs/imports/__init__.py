"""One importer a file; each registers itself (:func:`vftsim.labs.importing.register`) when it is imported."""
