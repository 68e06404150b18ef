"""Part of .ci/pages: makes results of many experiments out of the captures of one short suite.

    pages.py OUT BASE NAME:CHANGE:NOISE[:new|:unreliable]... --pairs N

Each experiment has the runs of BASE with other numbers: the comparison differs by CHANGE (a share) from the
baseline, and each run varies by NOISE. `new` adds pairs of a confirmation; `unreliable` marks every run as harmed by steal.
"""

import argparse
import json
import os
import pathlib
import random


def write(path, value):
    path.write_text(json.dumps(value))


def read(path):
    return json.loads(path.read_text())


def other_numbers(summary, factor):
    """The costs of a run, and its series, times `factor`."""
    for name in ("cpu", "cpu_per_event", "memory", "memory_peak"):
        if "value" in summary["values"].get(name, {}):
            summary["values"][name]["value"] *= factor if name.startswith("cpu") else 1 + (factor - 1) / 9
    for name in summary["series"]:
        if "cpu" in name:
            summary["series"][name] *= factor


def make_run(summary, source, target, identity, factor, is_unreliable):
    target.mkdir(parents=True)
    for name, path in (("manifest.json", source / "manifest.json"), ("summary.json", summary)):
        value = read(path)
        value["identity"] = identity
        if name == "summary.json":
            value["warnings"] = [{"cpu_steal": {"share": 0.31, "limit": 0.05}}] if is_unreliable else []
            other_numbers(value, factor)
        write(target / name, value)
    for name in ("series.parquet", "events.jsonl"):
        os.link(source / name, target / name)


def make_experiment(out, base, name, spec, pairs, chance):
    change, noise = float(spec[0]), float(spec[1])
    flags = spec[2:]
    sources = sorted((base / "base").glob("pair-*"))
    stages = [("search", "pair")] + ([("confirm", "confirm")] if "new" in flags else [])
    for stage, folder in stages:
        for pair in range(1, pairs + 1):
            shared = chance.gauss(0, noise)
            for position, variant in enumerate(("baseline", "comparison")):
                effect = change if variant == "comparison" else 0.0
                factor = (1 + effect) * (1 + shared + chance.gauss(0, noise))
                identity = {
                    "experiment": name,
                    "variant": variant,
                    "stage": stage,
                    "pair": pair,
                    "position": position,
                }
                source = sources[pair % len(sources)] / variant
                target = out / name / f"{folder}-{pair:03}" / variant
                summary = sources[0] / "baseline" / "summary.json"
                make_run(summary, source, target, identity, factor, "unreliable" in flags)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("experiments", nargs="+")
    parser.add_argument("--pairs", type=int, default=12)
    arguments = parser.parse_args()
    base, out = arguments.base, arguments.out
    suite = read(base / "suite.json")
    [pattern] = suite["plan"]["experiments"]
    (base / "base").is_symlink() or (base / "base").symlink_to(pattern["name"])
    out.mkdir(parents=True)
    chance = random.Random(7)
    plans = []
    for text in arguments.experiments:
        name, *spec = text.split(":")
        plan = json.loads(json.dumps(pattern))
        plan.update(name=name, stopping={"fixed": {"pairs": arguments.pairs}}, confirm="new" in spec)
        plans.append(plan)
        make_experiment(out, base, name, spec, arguments.pairs, chance)
    suite["plan"]["experiments"] = plans
    write(out / "suite.json", suite)


main()
