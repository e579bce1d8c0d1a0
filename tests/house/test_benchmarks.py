"""Benchmarks are run by hand and rot unseen: here each runs once on a tiny problem."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TINY = {
    "bench_training_step": {"preset": "default", "points": 16, "shapes": 8},
    "bench_fisher_map": {"preset": "default", "n": 2, "points": 50},
    "bench_pooled_time": {"points": 40},
}


@pytest.mark.parametrize("name", TINY)
def test_it_measures(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    row = importlib.import_module(name).measure(**TINY[name])
    assert all(value > 0 for value in row.values() if isinstance(value, float))
