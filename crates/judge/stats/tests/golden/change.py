"""Writes otava.csv, which tests/stats/change.rs compares with: what Apache
Otava 0.8.0 itself finds in several series.

Otava asks for older NumPy and SciPy than the other golden files; its analysis
runs with these all the same, so it is installed without what it depends on:

    python3 -m venv venv
    venv/bin/pip install 'scipy==1.17.1' 'numpy==2.4.6'
    venv/bin/pip install --no-deps 'apache-otava==0.8.0'
    venv/bin/python crates/judge/stats/tests/golden/change.py

It is seeded. Values are joined with semicolons, change points with bars.
"""

import csv
import math
import pathlib

import numpy as np
from otava.analysis import compute_change_points

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(20_260_422)


def steps(levels, length, noise):
    return np.concatenate([RANDOM.normal(level, noise, length) for level in levels])


def drift(count, correlation):
    values = [RANDOM.normal()]
    for _ in range(count - 1):
        kept = correlation * values[-1]
        values.append(kept + math.sqrt(1 - correlation**2) * RANDOM.normal())
    return 100 + np.array(values)


SERIES = {
    "one step": steps([100, 102], 30, 1),
    "up and down": steps([100, 105, 100], 25, 1),
    "many": steps([10, 12, 11, 15, 9, 14], 40, 0.5),
    "last value": np.append(RANDOM.normal(50, 0.5, 60), 58.0),
    "noise of 50": RANDOM.normal(1, 0.01, 50),
    "noise of 200": RANDOM.normal(1, 0.01, 200),
    "noise of 400": RANDOM.normal(1e6, 2e4, 400),
    "drift": drift(200, 0.5),
    "strong drift": drift(150, 0.9),
    "whole numbers": np.round(steps([20, 20, 23], 30, 2)),
    "constant": np.full(40, 3.5),
    "constant steps": np.repeat([1.0, 2.0, 2.0, 5.0], 12),
    "through zero": steps([-1, 0, 1], 25, 0.3),
    "two": np.array([1.0, 2.0]),
    "one": np.array([1.0]),
}

# Window, p value, magnitude.
OPTIONS = (
    (50, 0.001, 0.0),
    (30, 0.01, 0.0),
    (50, 0.05, 0.02),
    (9, 0.2, 0.0),
)

FIGURES = (
    "forward_change_percent",
    "change_magnitude",
    "mean_before",
    "stddev_before",
    "mean_after",
    "stddev_after",
)


def text(value):
    return repr(float(value))


def figures(point):
    values = [text(getattr(point.stats, name)()) for name in FIGURES]
    return ";".join([str(int(point.index)), *values, text(point.stats.pvalue)])


rows = []
for name, values in SERIES.items():
    # A list: given an array, Otava ignores the window.
    values = values.tolist()
    for window, p_value, magnitude in OPTIONS:
        with np.errstate(all="ignore"):
            points, _ = compute_change_points(
                list(values), window_len=window, max_pvalue=p_value, min_magnitude=magnitude
            )
        changes = "|".join(figures(point) for point in points)
        series = ";".join(map(text, values))
        rows.append([name, window, p_value, magnitude, series, changes])

with open(HERE / "otava.csv", "w", newline="") as file:
    file.write(f"# apache-otava 0.8.0, numpy {np.__version__}, by change.py\n")
    writer = csv.writer(file, lineterminator="\n")
    header = "series window p_value magnitude values".split()
    writer.writerow([*header, ";".join(["index", *FIGURES, "pvalue"])])
    writer.writerows(rows)
print("otava.csv", len(rows), sum(row[5].count("|") + bool(row[5]) for row in rows))
