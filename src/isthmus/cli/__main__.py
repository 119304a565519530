"""``python -m isthmus.cli`` is the same as ``isthmus``."""

from isthmus.cli.app import main

raise SystemExit(main())
