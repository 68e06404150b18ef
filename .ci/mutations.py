#!/usr/bin/env python3
"""Changes configuration files at random and checks them: `stillwell check` must not panic, must answer within half a
second and 64 MiB, and every error must have a place.

    python3 .ci/mutations.py PROGRAM [COUNT] [FOLDER…]

MUTATIONS_SEED is the seed of the changes (1).
"""
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS_MAX = 0.5
KIB_MAX = 64 * 1024
# A check that takes this long is ended, and counts as killed.
SECONDS_UNTIL_KILLED = 10
PLACE = re.compile(rb":\d+:\d+")
# A change may remove a whole file or name another one, and such errors have no place in a text.
WITHOUT_PLACE = re.compile(rb"no experiment|there is no|cannot read|cannot look|is empty|holds nothing|no `experiment.yaml`")
WORDS = ["-1", "0", "18446744073709551616", "1e999", "nan", "0x1F", "null", "~", "true", "[]", "{}", "[[[[", "{a: {b: [", "&a [*a]", "*b",
         "!static", "!x y", "'", '"', "max", "1 TiB", "10 Mb", "5k/s", "\t", "---", "...", "? :", "<<: *a", "seed: 1", "🦀", "\u0000", "|", ">-",
         "http://[::1", "127.0.0.1:99999", "/dev/zero", "..", "{{ x }}", "${X}"]


def check(stillwell, path):
    """Returns the exit code, the messages, the seconds and the KiB of memory of one check."""
    with tempfile.TemporaryFile() as messages:
        child = subprocess.Popen([stillwell, "--color", "never", "check", path], stdin=subprocess.DEVNULL,
                                 stdout=messages, stderr=messages)
        # This file descriptor is readable when the process has ended.
        process = os.pidfd_open(child.pid)
        if not select.select([process], [], [], SECONDS_UNTIL_KILLED)[0]:
            os.kill(child.pid, signal.SIGKILL)
        os.close(process)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        # CPU time, which other work of the machine does not change.
        seconds = usage.ru_utime + usage.ru_stime
        messages.seek(0)
        return child.returncode, messages.read(), seconds, usage.ru_maxrss


def changed(text, random_source):
    lines = text.split("\n")
    at = random_source.randrange(len(lines))
    destination = random_source.randrange(len(lines))
    kind = random_source.randrange(10)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(destination, lines[at])
    elif kind == 2:
        lines[at], lines[destination] = lines[destination], lines[at]
    elif kind == 3:
        lines[at] = " " * random_source.randrange(6) + lines[at]
    elif kind == 4:
        lines[at] = lines[at][random_source.randrange(4):]
    elif kind == 5:
        key, colon, _ = lines[at].partition(":")
        lines[at] = f"{key}{colon} {random_source.choice(WORDS)}"
    elif kind == 6:
        lines[at] = re.sub(r"\d+", lambda _: random_source.choice(WORDS), lines[at], count=1)
    elif kind == 7:
        text = "\n".join(lines)
        return text[: random_source.randrange(len(text) + 1)]
    elif kind == 8:
        place = random_source.randrange(len(lines[at]) + 1)
        lines[at] = lines[at][:place] + random_source.choice(WORDS) + lines[at][place:]
    else:
        key = lines[at].split(":")[0]
        lines[at] = lines[at].replace(key.strip() or "x", random_source.choice(WORDS) * random_source.choice([1, 1, 1000]), 1)
    return "\n".join(lines)


def copied(path, work):
    """Copies the folder of a case, which has the files that others name; returns the copy of the file."""
    top = path.parent.parent if path.parent.name in ("lading", "vector") else path.parent
    copy = Path(work) / "case"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(top, copy, symlinks=True)
    return copy / path.relative_to(top)


def is_whole(stillwell, path):
    with tempfile.TemporaryDirectory() as work:
        return check(stillwell, copied(path, work))[0] == 0


def main():
    stillwell = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    folders = [Path(word) for word in sys.argv[3:]] or [ROOT / "examples", ROOT / "harness"]
    source = random.Random(int(os.environ.get("MUTATIONS_SEED", "1")))
    files = []
    for folder in folders:
        for path in sorted(folder.rglob("*.yaml")):
            if path.stat().st_size < 200_000 and is_whole(stillwell, path):
                files.append(path)
    if not files:
        sys.exit("no file that can be checked")
    print(f"{len(files)} files, {count} changes")
    worst = {"seconds": 0.0, "kib": 0}
    codes, faults = {}, []
    with tempfile.TemporaryDirectory() as work:
        for number in range(count):
            path = files[number % len(files)]
            changed_file = copied(path, work)
            text = path.read_text()
            for _ in range(source.choice([1, 1, 2, 5])):
                text = changed(text, source) or "\n"
            changed_file.chmod(0o644)
            changed_file.write_text(text)
            code, messages, seconds, kib = check(stillwell, changed_file)
            codes[code] = codes.get(code, 0) + 1
            worst = {"seconds": max(worst["seconds"], seconds), "kib": max(worst["kib"], kib)}
            wrong = []
            if code not in (0, 2) or b"panicked" in messages:
                wrong.append(f"exit code {code}")
            if seconds > SECONDS_MAX or kib > KIB_MAX:
                wrong.append(f"{seconds:.2f} s, {kib} KiB")
            if code == 2 and not PLACE.search(messages) and not WITHOUT_PLACE.search(messages):
                wrong.append("an error without a place")
            if wrong:
                kept = Path(os.environ.get("MUTATIONS_KEEP", work)) / f"fault-{number}.yaml"
                kept.write_text(text)
                faults.append(f"{path}, change {number}: {', '.join(wrong)}\n{messages.decode(errors='replace')[:600]}")
    print(f"exit codes {codes}; at most {worst['seconds']:.3f} s of CPU time and {worst['kib'] / 1024:.1f} MiB")
    for fault in faults[:20]:
        print(fault)
    if faults:
        sys.exit(f"{len(faults)} faults")


main()
