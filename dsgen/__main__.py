"""``python -m dsgen``: the command line from a bare clone."""

import sys

from dsgen.cli import main

if __name__ == "__main__":
    sys.exit(main())
