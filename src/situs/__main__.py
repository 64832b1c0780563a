"""``python -m situs``."""

from situs.cli import main

if __name__ == "__main__":
    main()
