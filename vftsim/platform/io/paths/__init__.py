"""I/O paths: how packets get from a NIC into a guest and back, one file each."""
