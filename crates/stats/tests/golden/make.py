"""Writes the golden files that tests/stats/golden.rs compares with.

Run it anywhere Python has SciPy 1.17 and NumPy 2:

    python3 -m venv venv
    venv/bin/pip install 'scipy==1.17.1' 'numpy==2.4.6'
    venv/bin/python crates/stats/tests/golden/make.py

It is seeded: with these versions the files come out the same, byte for byte.
Numbers are written so that reading them gives back the same float; lists are
joined with semicolons.
"""

import csv
import pathlib
import statistics

import numpy as np
import scipy
from scipy import stats

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(20_240_217)


def text(value):
    return repr(float(value)) if not isinstance(value, str) else value


def joined(values):
    return ";".join(text(value) for value in values)


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        file.write(f"# scipy {scipy.__version__}, numpy {np.__version__}, by make.py\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[text(cell) for cell in row] for row in rows])
    print(name, len(rows))


def paired():
    """Paired t on log ratios: level, values, mean, sd, interval, p."""
    for count in (2, 3, 4, 5, 6, 8, 10, 13, 20, 30, 100):
        for level, change, noise, scale in (
            (0.95, 0.0, 0.01, 1.0),
            (0.90, 0.03, 0.02, 7.8e6),
            (0.99, -0.2, 0.15, 3e-7),
            (0.999, 0.0005, 0.0003, 4.2e12),
        ):
            shared = scale * np.exp(RANDOM.normal(0, 0.05, count))
            baseline = shared * np.exp(RANDOM.normal(0, noise, count))
            comparison = shared * (1 + change) * np.exp(RANDOM.normal(0, noise, count))
            logs = np.log(comparison / baseline)
            test = stats.ttest_1samp(logs, 0.0)
            same = stats.ttest_rel(np.log(comparison), np.log(baseline))
            assert np.isclose(test.pvalue, same.pvalue, rtol=1e-6, atol=1e-12)
            interval = test.confidence_interval(level)
            yield [
                level,
                joined(baseline),
                joined(comparison),
                np.mean(logs),
                np.std(logs, ddof=1),
                interval.low,
                interval.high,
                test.pvalue,
            ]


def student():
    """The t distribution: degrees, upper tail probability, value."""
    for degrees in (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 19, 24, 29, 39, 59, 99, 199, 999, 12_345.6, 99_999):
        for tail in (0.499, 0.4, 0.2, 0.1, 0.05, 0.025, 0.005, 5e-4, 1e-6, 1e-12):
            yield [degrees, tail, stats.t.isf(tail, degrees)]


def normal():
    """The normal distribution: probability, value."""
    for probability in (1e-12, 1e-6, 0.001, 0.025, 0.05, 0.2, 0.5, 0.8, 0.9, 0.975, 0.999):
        yield [probability, stats.norm.ppf(probability)]


def sample():
    """Descriptions of a column: values, shares, quantiles, mean, sd, median, MAD.

    Mean and sd come from exact fractions, since NumPy's own lose digits in the
    columns that lie far from zero.
    """
    shares = (0.0, 0.1, 0.5, 0.731, 0.99, 1.0)
    for count in (2, 3, 4, 5, 7, 10, 31):
        for values, tolerance in (
            (RANDOM.normal(0, 1, count), 1e-12),
            (1e9 + RANDOM.normal(0, 1e-3, count), 1e-3),
            (RANDOM.pareto(1.2, count), 1e-12),
            (np.round(RANDOM.normal(5, 2, count)) + 0.25, 1e-12),
        ):
            exact = statistics.stdev(values.tolist())
            assert np.isclose(exact, np.std(values, ddof=1), rtol=tolerance)
            yield [
                joined(values),
                joined(shares),
                joined(np.quantile(values, shares)),
                statistics.mean(values.tolist()),
                exact,
                np.median(values),
                stats.median_abs_deviation(values),
            ]


def power():
    """The paired t's power by the noncentral t: pairs, noise, log change, level, power."""
    for pairs in (2, 3, 4, 6, 10, 20, 50, 200):
        for noise, change in ((0.01, 0.01), (0.02, 0.01), (0.015, 0.03), (0.003, 0.0005)):
            for level in (0.9, 0.95, 0.99):
                critical = stats.t.isf((1 - level) / 2, pairs - 1)
                centre = np.sqrt(pairs) * change / noise
                found = stats.nct.sf(critical, pairs - 1, centre)
                other_side = stats.nct.sf(critical, pairs - 1, -centre)
                if np.isnan(other_side):  # SciPy has it only where it counts
                    assert stats.norm.sf(centre) < 1e-10 * found
                    other_side = 0.0
                yield [pairs, noise, change, level, found + other_side]


write("paired.csv", ["level", "baseline", "comparison", "mean", "sd", "lower", "upper", "p"], list(paired()))
write("student.csv", ["degrees", "tail", "value"], list(student()))
write("normal.csv", ["probability", "value"], list(normal()))
write("sample.csv", ["values", "shares", "quantiles", "mean", "sd", "median", "mad"], list(sample()))
write("power.csv", ["pairs", "noise", "log_change", "level", "power"], list(power()))
