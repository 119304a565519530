"""Fixtures that tests of federations share."""

from tests.processes.conftest import folder, hospitals

__all__ = ["folder", "hospitals"]
