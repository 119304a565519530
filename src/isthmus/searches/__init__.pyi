# `isthmus.lazy` imports each name when it is first used, so that a first `learn` is quick.

from isthmus.searches.astar import AStar, SubsetDP
from isthmus.searches.base import Search, SearchResult
from isthmus.searches.boss import Boss, KnownOrder
from isthmus.searches.dynotears import Dynotears
from isthmus.searches.fci import FCI, BossFCI, PAGResult, PAGSearch
from isthmus.searches.greedy import XGES, HillClimb
from isthmus.searches.ilp import ILP
from isthmus.searches.lingam import LiNGAM
from isthmus.searches.notears import Notears
from isthmus.searches.notears_additive import NotearsAdditive
from isthmus.searches.notears_mlp import NotearsMLP
from isthmus.searches.notears_penalties import L1, EqualNoiseEBIC, FamilyEBIC, QuasiMCP, RefitEBIC
from isthmus.searches.pc import PC
from isthmus.searches.rbnets import RBNets, RBNetsVariant
from isthmus.searches.relaxation import ExponentialAcyclicity, LogDet
from isthmus.searches.screened_boss import ScreenedBoss
from isthmus.searches.table_searches import ASOBS, OBS
from isthmus.watch import Progress, Stopped, Watch, drive

__all__ = [
    "ASOBS",
    "FCI",
    "ILP",
    "L1",
    "OBS",
    "PC",
    "XGES",
    "AStar",
    "Boss",
    "BossFCI",
    "Dynotears",
    "EqualNoiseEBIC",
    "ExponentialAcyclicity",
    "FamilyEBIC",
    "HillClimb",
    "KnownOrder",
    "LiNGAM",
    "LogDet",
    "Notears",
    "NotearsAdditive",
    "NotearsMLP",
    "PAGResult",
    "PAGSearch",
    "Progress",
    "QuasiMCP",
    "RBNets",
    "RBNetsVariant",
    "RefitEBIC",
    "ScreenedBoss",
    "Search",
    "SearchResult",
    "Stopped",
    "SubsetDP",
    "Watch",
    "drive",
]
