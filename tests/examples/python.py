# SPDX-License-Identifier: BSL-1.0
"""Where the tests find a Python with packages that not every machine has."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def python_with(*packages):
    """$PIPE_PYTHON, that of build/python, or the one that runs this; ends the process as skipped if none has all packages."""
    for python in (os.environ.get("PIPE_PYTHON"), ROOT / "build/python/bin/python", sys.executable):
        try:
            if python and subprocess.run([python, "-c", "import " + ", ".join(packages)],
                                         stderr=subprocess.DEVNULL).returncode == 0:
                return python
        except OSError:
            pass
    print(f"skipped: no Python with {' and '.join(packages)}: set PIPE_PYTHON to one, or run cmake/python.sh {' '.join(packages)}")
    sys.exit(SKIPPED)
