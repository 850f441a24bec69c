"""I/O paths into a guest, one file each."""
