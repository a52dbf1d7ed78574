"""``python -m envlock``."""

import sys

from envlock.cli import main

if __name__ == "__main__":
    sys.exit(main())
