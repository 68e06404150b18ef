"""Part of .ci/terminal: runs commands in tmux, and checks what their screens show.

    terminal.py SOCKET WORK FOLDER ADDRESS

WORK has a folder for each size of a screen. Screens are written to FOLDER. Exits with 1 after a broken rule.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

SOCKET, WORK, FOLDER, ADDRESS = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
SIZES = [(80, 24), (200, 50)]

# The longest time for which a command may show nothing.
BLANK_MAX = 2.0
# The answer is in so many of the last lines.
LAST_LINES = 8
COMMAND_MAX = 240.0

QUICK = "--measure 1s --warmup 300ms"
# Name, command, patterns of its live view, pattern of its answer.
COMMANDS = [
    ("load", f"stillwell load {ADDRESS} --rate 500/s -d 4s", ["p99", r"/s of 50\d/s", "q: end"], r"p99|unreliable|held"),
    (
        "run",
        f"stillwell run quickstart --fixed-pairs 2 {QUICK} --no-confirm --exit-zero --results results/one",
        ["pair 2 of 2", "measuring", "baseline", "comparison", "q: end"],
        r"inconclusive|regressed|improved|equivalent|invalid|different",
    ),
    (
        "run-sliced",
        f"stillwell run quickstart --fixed-pairs 2 {QUICK} --no-confirm --exit-zero --design sliced --results results/two",
        ["both at once", "measuring", r"(?s)▶ baseline +[1-9].*▶ comparison +[1-9]"],
        r"inconclusive|regressed|improved|equivalent|invalid|different",
    ),
    ("ab", f"stillwell ab {ADDRESS} {ADDRESS} --max-pairs 4 -d 300ms --exit-zero", [], r"inconclusive|equivalent|invalid|different|improved|regressed"),
    (
        "observe",
        "stillwell observe observe.yaml --results observed",
        ["measuring", r"target +[1-9]", "latency so far", "q: end"],
        r"run of",
    ),
    ("bench", "stillwell bench bench/relay/bench.yaml --iters 1000000 --rate 5k/s --stop-after 4s", [r"[1-9][\d,]*/s", "latency so far"], r"events"),
    (
        "find-capacity",
        f"stillwell find-capacity {ADDRESS} --from 500/s --to 4k/s --probe 2s --max-probes 5",
        [r"probe \d", "p99"],
        r"capacity|unreliable|sustain|/s",
    ),
    ("history", "stillwell history results --exit-zero", [], r"."),
    ("compare", "stillwell compare results/one results/two --exit-zero", [], r"."),
    (
        "calibrate",
        "stillwell calibrate quickstart --minutes 1 --pairs 4 --measure 500ms --warmup 200ms",
        ["pair", "q: end"],
        r".",
    ),
]
OBSERVE = """\
target:
  command: ["{self}", relay, --in, "tcp://127.0.0.1:PORT1", --out, "tcp://127.0.0.1:PORT2"]
  ready: {tcp: "127.0.0.1:PORT1"}
phases: {warmup: 500ms, measure: 4s}
workload:
  generators: [{tcp: "127.0.0.1:PORT1", payload: syslog5424, cache: 1 MiB, rate: 2k/s, stamps: all}]
  sinks: [{tcp: "127.0.0.1:PORT2"}]
"""

failures = []


def tmux(*arguments):
    command = ["tmux", "-L", SOCKET, "-f", str(WORK / "tmux.conf"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Screen:
    """A command in a session of tmux."""

    def __init__(self, size, name, command):
        self.columns, self.rows = size
        self.name = f"{name}-{self.columns}x{self.rows}"
        self.folder = WORK / f"{self.columns}x{self.rows}"
        self.ended = WORK / f"{self.name}.exit"
        script = WORK / f"{self.name}.sh"
        script.write_text(f"echo '$' {shlex.quote(command)}\n{command}\necho $? >{self.ended}.new\nmv {self.ended}.new {self.ended}\nexec sleep 600\n")
        place = ["-x", str(self.columns), "-y", str(self.rows), "-c", str(self.folder)]
        tmux("new-session", "-d", "-s", self.name, *place, f"bash {script}")

    def shown(self, *options):
        return tmux("capture-pane", "-p", "-t", f"={self.name}:", *options)

    def keep(self, kind, text):
        (FOLDER / f"{self.name}-{kind}.txt").write_text(text)

    def fail(self, why, text=""):
        failures.append(f"{self.name}: {why}")
        print(f"FAILED: {self.name}: {why}\n{text}", flush=True)

    def close(self):
        tmux("kill-session", "-t", f"={self.name}")


def watch(screen, patterns):
    """Follows the live view until the command has ended; the view has to show all patterns at once."""
    begun = time.monotonic()
    looked, blank, blank_longest, seen, best = begun, 0.0, 0.0, False, (-1, "")
    first = None
    while not screen.ended.exists():
        text = screen.shown()
        now = time.monotonic()
        # Time in which this script itself had no CPU does not count.
        blank += min(now - looked, 0.5)
        looked = now
        if now - begun > COMMAND_MAX:
            screen.fail(f"has not ended after {COMMAND_MAX:.0f} s", text)
            break
        content = [line for line in text.splitlines() if line.strip()]
        # Wide commands take several rows.
        if len(content) > 1 + len(content[0] if content else "") // screen.columns:
            blank = 0.0
            first = first or text
        blank_longest = max(blank_longest, blank)
        matching = sum(bool(re.search(pattern, text)) for pattern in patterns)
        if not seen and matching > best[0]:
            best = (matching, text)
        seen = seen or (matching == len(patterns) and bool(patterns))
        time.sleep(0.15)
    if patterns:
        screen.keep("first", first or "")
        screen.keep("live", best[1])
        if not seen:
            missing = [pattern for pattern in patterns if not re.search(pattern, best[1])]
            screen.fail(f"the live view never showed {missing}", best[1])
        if blank_longest > BLANK_MAX:
            screen.fail(f"nothing was shown for {blank_longest:.1f} s")
        check_text(screen, best[1].splitlines())


def check_text(screen, lines):
    for line in lines:
        if re.search(r"\x1b|\^\[|\[[0-9;]+[mKHJ]|�", line):
            screen.fail(f"escape codes are printed: {line!r}")


def check_end(screen, answer):
    """The final output, with lines that the terminal has broken joined again."""
    screen.keep("end", screen.shown())
    whole = screen.shown("-J", "-S", "-").rstrip().splitlines()
    screen.keep("whole", "\n".join(whole) + "\n")
    lines = whole[1:]
    check_text(screen, lines)
    for line in lines:
        # Commands and addresses are not broken, or they could not be copied. On a busy machine an interval has any width.
        if "unreliable" in line or "! invalid" in "".join(lines[-6:]):
            continue
        if len(line.rstrip()) > screen.columns and not re.search(r"stillwell |https?://|/", line):
            screen.fail(f"a line has {len(line.rstrip())} columns: {line}")
    last = [line for line in lines if line.strip()][-LAST_LINES:]
    if not any(re.search(answer, line) for line in last):
        screen.fail(f"the answer ({answer}) is not in the last {LAST_LINES} lines", "\n".join(last))


def of_size(size):
    ports = (9100, 9200) if size == SIZES[0] else (9150, 9250)
    text = OBSERVE.replace("PORT1", str(ports[0])).replace("PORT2", str(ports[1]))
    folder = WORK / f"{size[0]}x{size[1]}"
    (folder / "observe.yaml").write_text(text)
    for name, command, patterns, answer in COMMANDS:
        begun = time.monotonic()
        screen = Screen(size, name, command)
        watch(screen, patterns)
        code = screen.ended.read_text().strip() if screen.ended.exists() else "none"
        check_end(screen, answer)
        if code not in ("0", "1", "4"):
            screen.fail(f"exit code {code}", screen.shown())
        screen.close()
        print(f"{screen.name}: exit {code}, {time.monotonic() - begun:.0f} s", flush=True)


(WORK / "tmux.conf").write_text("set -g status off\nset -g history-limit 5000\nset -g remain-on-exit on\nset -g exit-empty off\n")
tmux("start-server")
threads = [threading.Thread(target=of_size, args=(size,)) for size in SIZES]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(1 if failures else 0)
