"""``python -m isthmus.cli`` is the same as ``isthmus``."""

from isthmus.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
