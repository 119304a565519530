"""One file for each engine: how it adds up moments without giving rows away."""

from __future__ import annotations
