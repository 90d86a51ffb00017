"""Names of the array types, for annotations."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
ArmArray = NDArray[np.intp]
IndexArray = NDArray[np.intp]
WordArray = NDArray[np.uint64]
