"""Part of .ci/pages: makes results of many experiments out of the captures of one short suite.

    pages.py OUT BASE NAME:CHANGE:NOISE[:new|:unreliable]... --pairs N
    pages.py --profiles BASE

The second form adds a profile of the CPU to every run of BASE; its `verify` is hot in the comparison alone.

Each experiment has the runs of BASE with other numbers: the comparison differs by CHANGE (a share) from the
baseline, and each run varies by NOISE. `new` adds pairs of a confirmation; `unreliable` marks every run as harmed by steal.
"""

import argparse
import gzip
import json
import os
import pathlib
import random
import sys


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
    if (source / "profiles").is_dir():
        (target / "profiles").symlink_to((source / "profiles").resolve())


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


def number(value):
    """A number of a protobuf message, seven bits in each byte."""
    result = b""
    while value > 127:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def field(index, value):
    if isinstance(value, int):
        return number(index << 3) + number(value)
    value = value.encode() if isinstance(value, str) else value
    return number(index << 3 | 2) + number(len(value)) + value


def pprof(stacks, time_ns, duration_ns):
    """A profile of the CPU in the format of pprof: amounts in nanoseconds by stack, `main;serve`."""
    names = sorted({name for stack in stacks for name in stack.split(";")})
    strings = ["", "samples", "count", "cpu", "nanoseconds", *names]
    message = field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4))
    for stack, amount in stacks.items():
        places = b"".join(number(names.index(name) + 1) for name in reversed(stack.split(";")))
        message += field(2, field(1, places) + field(2, number(amount // 1_000_000) + number(amount)))
    for place, name in enumerate(names, 1):
        message += field(4, field(1, place) + field(4, field(1, place)))
        message += field(5, field(1, place) + field(2, strings.index(name)))
    message += b"".join(field(6, text) for text in strings)
    return gzip.compress(message + field(9, time_ns) + field(10, duration_ns))


def add_profiles(base):
    for manifest in base.glob("*/pair-*/*/manifest.json"):
        run, value = manifest.parent, read(manifest)
        moments = {mark["phase"]: mark["moment"] for mark in value["phases"]}
        measured = moments["measure"] - value["phases"][0]["moment"] + 100_000_000
        stacks = {
            "main;serve": 40_000_000,
            "main;serve;parse<u8>;next_token": 260_000_000,
            "main;serve;parse<u8>;unescape": 90_000_000,
            "main;serve;write": 210_000_000,
            "main;flush": 50_000_000,
        }
        if run.name == "comparison":
            stacks["main;serve;verify"] = 160_000_000
        (run / "profiles").mkdir(exist_ok=True)
        profile = pprof(stacks, value["started_wall_millis"] * 1_000_000 + measured, 500_000_000)
        (run / "profiles" / "profile-0.001.pb.gz").write_bytes(profile)


def main():
    if sys.argv[1] == "--profiles":
        add_profiles(pathlib.Path(sys.argv[2]))
        return
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
