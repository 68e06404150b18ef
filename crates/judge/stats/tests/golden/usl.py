"""Writes usl.csv: fits of the universal scalability law by SciPy.

Run it as make.py says, which it needs no more than SciPy and NumPy of. Each row
holds the points, and lambda, sigma, kappa, their standard errors, and the
residual's standard deviation. Where the best fit lies at a bound, errors are of
the parameters that are free.
"""

import pathlib

import numpy as np
import scipy
from scipy.optimize import curve_fit

HERE = pathlib.Path(__file__).parent
RANDOM = np.random.default_rng(20_261_121)
TIGHT = dict(xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=100_000)


def law(n, lam, sigma, kappa):
    return lam * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def scaled(n, x):
    """The fit with all parameters near one: tolerances mean the same for each."""
    guess = np.array([x[0] / n[0], 0.02, 0.0005])
    best = None
    for fixed in ((), (2,), (1,), (1, 2)):
        free = [index for index in range(3) if index not in fixed]

        def scaled_law(loads, *values):
            full = np.zeros(3)
            full[free] = np.array(values) * guess[free]
            return law(loads, *full)

        try:
            factors, covariance = curve_fit(scaled_law, n, x, p0=np.ones(len(free)), method="trf", x_scale="jac", **TIGHT)
        except RuntimeError:
            continue
        values, errors = np.zeros(3), np.zeros(3)
        values[free] = factors * guess[free]
        errors[free] = np.sqrt(np.diag(covariance)) * guess[free]
        if (values[1:] < 0).any():
            continue
        residual = np.sqrt(((x - law(n, *values)) ** 2).sum() / (len(n) - len(free)))
        if best is None or residual < best[2]:
            best = (values, errors, residual)
        if not fixed:
            break
    return best


def main():
    loads = {
        "doubling": np.array([1, 2, 4, 8, 16, 32, 64], float),
        "fine": np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32], float),
    }
    rows = []
    for name, steps in loads.items():
        for lam, sigma, kappa in ((500, 0.05, 0.005), (40_000, 0.02, 0.0004), (3.5, 0.3, 0.01), (1e6, 0.1, 0.0)):
            for noise in (0.002, 0.03):
                n = np.repeat(steps, 3)
                x = law(n, lam, sigma, kappa) * np.exp(RANDOM.normal(0, noise, len(n)))
                values, errors, residual = scaled(n, x)
                rows.append([n, x, values, errors, [residual]])
    with open(HERE / "usl.csv", "w", newline="") as file:
        file.write(f"# scipy {scipy.__version__}, numpy {np.__version__}, by usl.py\n")
        file.write("concurrency,throughput,parameters,errors,residual\n")
        for row in rows:
            file.write(",".join(";".join(repr(float(value)) for value in cell) for cell in row) + "\n")
    print("usl.csv", len(rows))


main()
