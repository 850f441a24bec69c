"""One tool a file; each importer registers itself (:func:`vftsim.labs.importing.register`) when it is imported."""
