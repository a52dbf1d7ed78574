"""doctor: what a machine and a target are, what is wrong with them, and what to type."""
