"""On a machine without VTK, ITK and libigl the rooms open, and meshes are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.problems.broken_shapes import write_raw

ABSENT = ("pyvista", "vtk", "vtkmodules", "SimpleITK", "igl", "joblib", "ot", "pydantic")
CODE = """
import sys
sys.modules.update(dict.fromkeys({absent}))
from prism.cohort import Cohort, check_cohort, read_samples
from prism.preprocess import sample_sdf
cohort = Cohort.read({folder!r})
assert cohort.shapes[0].kind == "surface"
assert check_cohort({folder!r}, workers=1).ok
"""


def test_a_bare_machine_reads_meshes(tmp_path: Path) -> None:
    code = CODE.format(absent=ABSENT, folder=str(write_raw(tmp_path)))
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
