"""One tool a file; each importer registers itself (:func:`vftsim.labs.importing.importer`) when it is imported."""
