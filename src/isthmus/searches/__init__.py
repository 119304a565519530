"""How to look: searches over graphs, each in a file of its own."""

from isthmus.searches.base import Found, Progress, Run, Search, drive
from isthmus.searches.boss import Boss
from isthmus.searches.dynotears import Dynotears
from isthmus.searches.hill_climb import HillClimb
from isthmus.searches.notears_additive import NotearsAdditive

__all__ = [
    "Boss",
    "Dynotears",
    "Found",
    "HillClimb",
    "NotearsAdditive",
    "Progress",
    "Run",
    "Search",
    "drive",
]
