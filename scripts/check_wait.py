"""Says how long whoever builds and tests waited, by what scripts/timed noted, and where that is longer than it may be.

The bounds are those of two quiet cores. Exit code 1 where one is passed; .ci/run prints it and goes on, since machines
are shared and noisy.
"""

import sys
from pathlib import Path

NOTED = Path(__file__).resolve().parent.parent / "build" / "wait.txt"
BOUNDS = {
    "pytest": (8 * 60, "make test, once built: make tests smaller, or say in a slow one why it must be"),
    "ci": (32 * 60, ".ci/run from nothing; 25 minutes with its compiler cache"),
    "package": (5 * 60, "make package: library and extension"),
}


def main() -> int:
    """Prints the latest time of each name; the exit code."""
    if not NOTED.exists():
        print(f"{NOTED}: not there: `make test` writes it")
        return 1
    latest = {
        name: int(seconds) for name, _, seconds in (each.partition(" ") for each in NOTED.read_text().splitlines())
    }
    late = 0
    for name, seconds in latest.items():
        most, what = BOUNDS.get(name, (0, ""))
        passed = 0 < most < seconds
        late += passed
        print(
            f"{name:10} {seconds // 60:3} min {seconds % 60:2} s"
            + (f"  at most {most // 60} min: {what}" if passed else "")
        )
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
