"""Put the locked set back, all or nothing."""
