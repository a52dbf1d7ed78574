"""A folder of wheels that carries its own manifest and checksums."""
