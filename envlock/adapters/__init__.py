"""The only code that touches other programs and the disk."""
