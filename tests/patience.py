"""How late an answer may come in tests of time limits and of Ctrl-C."""

from __future__ import annotations

import os

LATENESS = 0.5 if "ISTHMUS_LONG" in os.environ else 2.5
"""Seconds. Half a second is what we promise; a machine that runs other tests beside gets more."""
