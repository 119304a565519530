"""How to look: searches over graphs, each in a file of its own."""

from isthmus.searches.asobs import ASOBS
from isthmus.searches.astar import AStar
from isthmus.searches.base import Found, Progress, Run, Search, drive
from isthmus.searches.boss import Boss
from isthmus.searches.dynotears import Dynotears
from isthmus.searches.hill_climb import HillClimb
from isthmus.searches.ilp import ILP
from isthmus.searches.known_order import KnownOrder
from isthmus.searches.notears import Notears
from isthmus.searches.notears_acyclicity import Exponential, LogDet
from isthmus.searches.notears_additive import NotearsAdditive
from isthmus.searches.notears_mlp import NotearsMLP
from isthmus.searches.notears_penalties import L1, EqualNoiseEBIC, QuasiMCP, RefitEBIC
from isthmus.searches.obs import OBS
from isthmus.searches.rbnets import Departures, RBNets
from isthmus.searches.subset_dp import SubsetDP
from isthmus.searches.xges import XGES

__all__ = [
    "ASOBS",
    "ILP",
    "L1",
    "OBS",
    "XGES",
    "AStar",
    "Boss",
    "Departures",
    "Dynotears",
    "EqualNoiseEBIC",
    "Exponential",
    "Found",
    "HillClimb",
    "KnownOrder",
    "LogDet",
    "Notears",
    "NotearsAdditive",
    "NotearsMLP",
    "Progress",
    "QuasiMCP",
    "RBNets",
    "RefitEBIC",
    "Run",
    "Search",
    "SubsetDP",
    "drive",
]
