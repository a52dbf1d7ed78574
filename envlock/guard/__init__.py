"""No vendor build is lost to an install."""
