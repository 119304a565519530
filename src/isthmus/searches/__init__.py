"""How to look: searches over graphs, each in a file of its own."""

from isthmus.searches.base import Found, Progress, Run, Search, drive
from isthmus.searches.boss import Boss
from isthmus.searches.hill_climb import HillClimb

__all__ = ["Boss", "Found", "HillClimb", "Progress", "Run", "Search", "drive"]
