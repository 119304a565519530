"""Types that many modules use."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""An array of double precision numbers."""

Integers: TypeAlias = NDArray[np.int64]
"""An array of 64-bit integers."""

Bools: TypeAlias = NDArray[np.bool_]
"""An array of Booleans."""
