"""The example with many conversations, with few of them."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples/many.py"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_many_conversations_survive_random_cancels(model):
    """Breaks when one of them is stuck or lost, or memory grows."""
    run = subprocess.run([sys.executable, EXAMPLE, model._path, "12", "3"], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "stuck" in run.stdout and run.stdout.count("memory") == 3, run.stdout
