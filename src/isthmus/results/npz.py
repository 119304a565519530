"""What reading a damaged archive of arrays can raise."""

import zipfile
import zlib

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    LookupError,
    TypeError,
    ValueError,
    RuntimeError,  # also NotImplementedError: a method of compression that zipfile does not have
)
