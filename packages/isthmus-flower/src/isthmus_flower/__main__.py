"""``python -m isthmus_flower`` prints the folder of the app, for ``flwr run``."""

import sys
from pathlib import Path

sys.stdout.write(f"{Path(__file__).parent / 'app'}\n")
