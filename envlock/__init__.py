"""envlock: keep, guard and restore the vendor builds of an accelerator image."""

__version__ = "0.1.0"
