"""Names for the types of numpy arrays that all layers share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
IndexArray = npt.NDArray[np.intp]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]
