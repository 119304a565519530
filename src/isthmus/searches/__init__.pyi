# `isthmus.lazy` imports each name when it is first used, so that a first `learn` is quick.

from isthmus.searches.base import Progress, Search, SearchResult, Stopped, Watch, drive
from isthmus.searches.constraint.fci import FCI, BossFCI, PAGResult, PAGSearch
from isthmus.searches.constraint.lingam import LiNGAM
from isthmus.searches.constraint.pc import PC
from isthmus.searches.continuous.dynotears import Dynotears
from isthmus.searches.continuous.family_criterion import FamilyEBIC
from isthmus.searches.continuous.notears import Notears
from isthmus.searches.continuous.notears_additive import NotearsAdditive
from isthmus.searches.continuous.notears_mlp import NotearsMLP
from isthmus.searches.continuous.notears_penalties import L1, EqualNoiseEBIC, QuasiMCP, RefitEBIC
from isthmus.searches.continuous.relaxation import ExponentialAcyclicity, LogDet
from isthmus.searches.exact.astar import AStar
from isthmus.searches.exact.ilp import ILP
from isthmus.searches.exact.subset_dp import SubsetDP
from isthmus.searches.greedy import XGES, HillClimb
from isthmus.searches.orders.boss import Boss
from isthmus.searches.orders.known_order import KnownOrder
from isthmus.searches.orders.rbnets import RBNets, RBNetsVariant
from isthmus.searches.orders.screened_boss import ScreenedBoss
from isthmus.searches.orders.table_searches import ASOBS, OBS

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
