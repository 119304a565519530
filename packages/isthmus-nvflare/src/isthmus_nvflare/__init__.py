"""Isthmus studies as jobs of NVIDIA FLARE: a Controller for the server, an Executor for sites."""

from isthmus_nvflare.controller import StudyController
from isthmus_nvflare.executor import SiteExecutor

__all__ = ["SiteExecutor", "StudyController"]
