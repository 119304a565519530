"""How to look: searches over graphs, each in a file of its own."""

from isthmus.searches.base import Found, Progress, Run, Search, drive
from isthmus.searches.boss import Boss
from isthmus.searches.dynotears import Dynotears
from isthmus.searches.hill_climb import HillClimb
from isthmus.searches.notears import Notears
from isthmus.searches.notears_acyclicity import Exponential, LogDet
from isthmus.searches.notears_additive import NotearsAdditive
from isthmus.searches.notears_mlp import NotearsMLP
from isthmus.searches.notears_penalties import L1, QuasiMCP, RefitEBIC
from isthmus.searches.xges import XGES

__all__ = [
    "L1",
    "XGES",
    "Boss",
    "Dynotears",
    "Exponential",
    "Found",
    "HillClimb",
    "LogDet",
    "Notears",
    "NotearsAdditive",
    "NotearsMLP",
    "Progress",
    "QuasiMCP",
    "RefitEBIC",
    "Run",
    "Search",
    "drive",
]
