"""Scripts that the target's Python runs; nothing of envlock imports them, nor they envlock."""
