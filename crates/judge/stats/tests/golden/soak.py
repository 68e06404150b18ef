"""Writes soak.csv and smp.csv, which tests/stats/soak.rs compares with.

Run it anywhere Python has pandas 2, SciPy 1.17 and NumPy 2:

    python3 -m venv venv
    venv/bin/pip install 'pandas==2.3.3' 'scipy==1.17.1' 'numpy==2.4.6'
    venv/bin/python crates/judge/stats/tests/golden/soak.py

Each row of soak.csv has the counters of both variants, runs parted by bars, the
readings of a run by semicolons and their second from their value by a colon, and
then every figure as pandas and SciPy have it. It is seeded.
"""

import csv
import pathlib

import numpy as np
import pandas as pd
import scipy
from scipy import stats

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(20_220_428)
HEAD = f"# pandas {pd.__version__}, scipy {scipy.__version__}, numpy {np.__version__}, by soak.py\n"


def runs(count, seconds, rate, noise, between, uneven, stalls):
    """Counters of some runs: one frame a run."""
    for run in range(count):
        steps = RANDOM.choice([1, 1, 1, 2, 3], seconds) if uneven else np.ones(seconds, int)
        index = np.concatenate([[0], np.cumsum(steps)])
        level = rate * (1 + RANDOM.normal(0, between))
        grown = steps * level * np.exp(RANDOM.normal(0, noise, seconds))
        if stalls:
            start = seconds - 20
            grown[start : start + 6] = 0
        value = np.round(np.concatenate([[0], np.cumsum(grown)]))
        yield pd.DataFrame({"fetch_index": index, "value": value, "run_id": run})


def written(frames):
    return "|".join(
        ";".join(f"{i}:{float(v)!r}" for i, v in zip(f.fetch_index, f.value)) for f in frames
    )


def kept(frames, cpus, warmup):
    parts = []
    for frame in frames:
        part = frame.assign(value=frame.value / cpus)
        part["throughput"] = np.gradient(part.value, part.fetch_index)
        parts.append(part)
    pooled = pd.concat(parts)
    return pooled[(pooled.fetch_index > warmup) & (pooled.throughput > 0.0)]


def outlier_percent(column):
    low, high = column.quantile(0.25), column.quantile(0.75)
    reach = 1.5 * (high - low)
    return ((column < low - reach) | (column > high + reach)).sum() / len(column) * 100


def described(frame):
    rates = frame.throughput
    return [
        len(rates), rates.mean(), rates.std(), stats.sem(rates), rates.min(), rates.median(),
        rates.quantile(0.9), rates.quantile(0.95), rates.quantile(0.99), rates.max(), rates.skew(),
        stats.variation(rates), outlier_percent(frame.value), outlier_percent(rates),
    ]


FIGURES = (
    "samples mean sd sem min median p90 p95 p99 max skewness cov outliers_value outliers_rate".split()
)


def cell(value):
    return value if isinstance(value, str) else repr(float(value))


def write(name, header, rows):
    with open(HERE / name, "w", newline="") as file:
        file.write(HEAD)
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([[cell(value) for value in row] for row in rows])
    print(name, len(rows))


def soaks():
    cases = (
        # runs, seconds, noise, between, change, uneven, stalls, cpus, warmup
        (3, 60, 0.02, 0.002, 0.0, False, False, 1, 30),
        (4, 45, 0.30, 0.01, -0.08, False, False, 4, 30),
        (2, 50, 0.05, 0.0, 0.03, True, False, 7, 30),
        (3, 60, 0.10, 0.02, -0.12, False, True, 4, 20),
        (1, 40, 0.01, 0.0, 0.1, True, True, 3, 5),
    )
    for count, seconds, noise, between, change, uneven, stalls, cpus, warmup in cases:
        base = list(runs(count, seconds, 8.2e6, noise, between, uneven, stalls))
        comp = list(runs(count, seconds, 8.2e6 * (1 + change), noise, between, uneven, False))
        baseline, comparison = kept(base, cpus, warmup), kept(comp, cpus, warmup)
        test = stats.ttest_ind_from_stats(
            baseline.throughput.mean(), baseline.throughput.std(), len(baseline),
            comparison.throughput.mean(), comparison.throughput.std(), len(comparison), equal_var=False,
        )
        difference = comparison.throughput.mean() - baseline.throughput.mean()
        yield [
            written(base), written(comp), cpus, warmup,
            difference, round(difference / baseline.throughput.mean() * 100, 2),
            test.statistic, test.pvalue, (1 - test.pvalue) * 100,
            *described(baseline), *described(comparison), *described(baseline[baseline.run_id == 0]),
        ]


def smps():
    for count, seconds, noise, between, change, uneven, gauge in (
        (3, 70, 0.02, 0.0, 0.0, False, False),
        (5, 60, 0.06, 0.01, -0.07, False, False),
        (3, 65, 0.15, 0.0, 0.09, True, False),
        (2, 60, 0.03, 0.01, 0.06, False, True),
    ):
        base = list(runs(count, seconds, 5.1e6, noise, between, uneven, False))
        comp = list(runs(count, seconds, 5.1e6 * (1 + change), noise, between, uneven, False))
        pooled = []
        for frames in (base, comp):
            parts = []
            for frame in frames:
                if gauge:
                    frame["value"] = frame.value.diff().fillna(0.0)
                    rates = frame.value
                else:
                    rates = frame.value.diff() / frame.fetch_index.diff()
                parts.append(rates[frame.fetch_index > 45])
            pooled.append(pd.concat(parts))
        baseline, comparison = pooled
        test = stats.ttest_ind(comparison, baseline, equal_var=False)
        interval = test.confidence_interval(0.9)
        yield [
            "gauge" if gauge else "counter", written(base), written(comp),
            len(baseline), len(comparison), baseline.mean(), comparison.mean(),
            (comparison.mean() - baseline.mean()) / baseline.mean() * 100,
            interval.low / baseline.mean() * 100, interval.high / baseline.mean() * 100, test.pvalue,
            max(stats.variation(baseline), stats.variation(comparison)),
        ]


write(
    "soak.csv",
    ["baseline", "comparison", "cpus", "warmup", "difference", "percent", "t", "p", "confidence"]
    + [f"{part}_{name}" for part in ("baseline", "comparison", "run") for name in FIGURES],
    list(soaks()),
)
write(
    "smp.csv",
    "series baseline comparison n_baseline n_comparison mean_baseline mean_comparison percent lower upper p cov".split(),
    list(smps()),
)
