"""Writes the golden files that tests/stats/golden.rs compares with.

Run it anywhere Python has SciPy 1.17, statsmodels 0.15 and NumPy 2:

    python3 -m venv venv
    venv/bin/pip install 'scipy==1.17.1' 'statsmodels==0.15.0' 'numpy==2.4.6'
    venv/bin/python crates/judge/stats/tests/golden/make.py

It is seeded: with these versions the files come out the same, byte for byte.
Numbers are written so that reading them gives back the same float; lists are
joined with semicolons.
"""

import csv
import itertools
import pathlib
import statistics

import numpy as np
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(20_240_217)


def text(value):
    return repr(float(value)) if not isinstance(value, str) else value


def joined(values):
    return ";".join(text(value) for value in values)


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        versions = f"scipy {scipy.__version__}, statsmodels {statsmodels.__version__}, numpy {np.__version__}"
        file.write(f"# {versions}, by make.py\n")
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
    """Descriptions of a column: values, shares, quantiles, mean, sd, median.

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
            ]


def power():
    """The paired t's power by the noncentral t: pairs, noise, log change, level, power."""
    for pairs in (2, 3, 4, 6, 10, 20, 50, 200):
        for noise, change in ((0.01, 0.01), (0.02, 0.01), (0.015, 0.03), (0.003, 0.0005)):
            for level in (0.9, 0.95, 0.99):
                critical = stats.t.isf((1 - level) / 2, pairs - 1)
                centre = np.sqrt(pairs) * change / noise
                upper_side = stats.nct.sf(critical, pairs - 1, centre)
                lower_side = stats.nct.sf(critical, pairs - 1, -centre)
                if np.isnan(lower_side):  # SciPy has it only where it counts
                    assert stats.norm.sf(centre) < 1e-10 * upper_side
                    lower_side = 0.0
                yield [pairs, noise, change, level, upper_side + lower_side]


def columns(*counts):
    """Columns to rank: of all noises, with and without ties and zeros."""
    for draw in (
        lambda count: RANDOM.normal(0.4, 1.0, count),
        lambda count: RANDOM.standard_t(2, count) * 1e-6,
        lambda count: RANDOM.normal(-0.02, 0.02, count).round(2),
        lambda count: RANDOM.integers(-3, 4, count) * 0.5,
    ):
        yield from ([draw(count) for count in row] for row in counts)


def two_samples():
    """Two columns by Welch's test: level, values, t, degrees, p, difference and interval."""
    for baselines, comparisons, level in ((2, 2, 0.95), (3, 3, 0.95), (4, 9, 0.9), (12, 5, 0.99), (40, 60, 0.95), (150, 140, 0.9)):
        for shift, spread in ((0.0, 1.0), (0.5, 3.0), (-2.0, 0.2)):
            baseline = 20 + RANDOM.normal(0, 1.0, baselines)
            comparison = 20 + shift + RANDOM.normal(0, spread, comparisons)
            test = stats.ttest_ind(comparison, baseline, equal_var=False)
            interval = test.confidence_interval(level)
            yield [
                level,
                joined(baseline),
                joined(comparison),
                test.statistic,
                test.df,
                test.pvalue,
                np.mean(comparison) - np.mean(baseline),
                interval.low,
                interval.high,
            ]


def one_sample():
    """One column against a number: level, values, number, t, p, interval."""
    for count in (2, 3, 5, 8, 20, 200):
        for level, expected in ((0.95, 0.0), (0.9, 5.0), (0.99, 4.5)):
            values = RANDOM.normal(5, 2, count)
            test = stats.ttest_1samp(values, expected)
            interval = test.confidence_interval(level)
            yield [level, joined(values), expected, test.statistic, test.pvalue, interval.low, interval.high]


def signed_ranks():
    """Wilcoxon's signed ranks by their default method: values, statistic, p."""
    for (values,) in columns((1,), (2,), (4,), (5,), (6,), (7,), (10,), (13,), (14,), (20,), (30,), (49,), (50,), (51,), (120,)):
        if not np.any(values):
            continue
        test = stats.wilcoxon(values)
        yield [joined(values), test.statistic, test.pvalue]


def mann_whitney():
    """Mann and Whitney's test by its default method: values, u, p."""
    for baseline, comparison in columns((1, 1), (1, 5), (3, 3), (4, 6), (8, 8), (8, 30), (25, 7), (9, 9), (10, 40), (100, 80)):
        test = stats.mannwhitneyu(baseline, comparison)
        yield [joined(baseline), joined(comparison), test.statistic, test.pvalue]


def hodges_lehmann():
    """By brute force: values, median of Walsh means."""
    for count in (1, 2, 3, 6, 7, 10, 15):
        for _ in range(3):
            values = RANDOM.normal(3, 1, count)
            means = [sum(pair) / 2 for pair in itertools.combinations_with_replacement(values, 2)]
            yield [joined(values), np.median(means)]


def multiplicity():
    """Adjusted p values: p, Holm, Benjamini and Hochberg."""
    for count in (1, 2, 3, 10, 40):
        for power in (1, 3):
            values = RANDOM.uniform(0, 1, count) ** power
            if count == 10:
                values[3] = values[7]
                values[1] = 0.0
            holm = multipletests(values, method="holm")[1]
            bh = multipletests(values, method="fdr_bh")[1]
            assert np.allclose(bh, stats.false_discovery_control(values), rtol=1e-14)
            yield [joined(values), joined(holm), joined(bh)]


write("paired.csv", ["level", "baseline", "comparison", "mean", "sd", "lower", "upper", "p"], list(paired()))
write("student.csv", ["degrees", "tail", "value"], list(student()))
write("normal.csv", ["probability", "value"], list(normal()))
write("sample.csv", ["values", "shares", "quantiles", "mean", "sd", "median"], list(sample()))
write("power.csv", ["pairs", "noise", "log_change", "level", "power"], list(power()))
write(
    "two_samples.csv",
    ["level", "baseline", "comparison", "t", "degrees", "p", "difference", "lower", "upper"],
    list(two_samples()),
)
write("one_sample.csv", ["level", "values", "expected", "t", "p", "lower", "upper"], list(one_sample()))
write("signed_ranks.csv", ["values", "statistic", "p"], list(signed_ranks()))
write("mann_whitney.csv", ["baseline", "comparison", "u", "p"], list(mann_whitney()))
write("hodges_lehmann.csv", ["values", "centre"], list(hodges_lehmann()))
write("multiplicity.csv", ["p", "holm", "benjamini_hochberg"], list(multiplicity()))
