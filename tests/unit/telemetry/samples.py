"""Where the recorded pages are, for the tests that read them."""

import os
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("SLUICE_SAMPLES", ""))
needs_samples = pytest.mark.skipif("SLUICE_SAMPLES" not in os.environ, reason="SLUICE_SAMPLES does not name the folder of recorded pages")
