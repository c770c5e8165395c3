"""`python -m penstock`: the command line."""

import sys

from penstock._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
