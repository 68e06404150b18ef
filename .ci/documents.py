"""Runs the command blocks of the documents, each in a new folder.

    documents.py STILLWELL FILE...

A block is fenced as ```console (lines that begin with `$ ` are commands, the others output) or ```sh (all
lines are commands). It runs in bash, in an empty folder with `stillwell` in PATH. If its commands name
`examples/`, that folder is copied. Exit code 4 (the machine was too busy for a reliable result) is accepted
like 0. If a block shows output, most of its lines must begin with words that the real output has, too.

A comment before a block changes that: `<!-- ci: KEY=VALUE … -->`.

    file=PATH      the block below (in any language) is the file PATH of all later blocks of this document
    before=SHELL   commands that run first, for what the text around the block describes; functions of
                   .ci/document-parts are among them
    add=OPTIONS    options that shorten the last command
    exit=CODE      the exit code that the last command must have instead of 0
    needs=PATH     the block does not run where PATH is missing
    skip=REASON    the block does not run
"""

import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_SECONDS = 120
TOTAL_SECONDS = 3000
FENCE = re.compile(r"^```(\w*)$")
UNITS = {"ns", "µs", "ms", "min", "kib", "mib", "gib"}
MISSING = 77
KEYS = {"file", "before", "add", "exit", "needs", "skip"}


class Problem(Exception):
    """A block that does not do what its document shows."""


class Missing(Exception):
    """A program that a block needs and that this machine does not have."""


def blocks(text):
    """Yields line number, language, lines and settings of each fenced block."""
    settings, begin, language, lines = {}, None, "", []
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if begin is not None:
            if line == "```":
                yield begin, language, lines, settings
                settings, begin = {}, None
            else:
                lines.append(line)
        elif fence:
            begin, language, lines = number, fence[1], []
        elif line.startswith("<!-- ci:"):
            pairs = (word.split("=", 1) for word in shlex.split(line[len("<!-- ci:"):-len("-->")]))
            settings = dict(pairs)
            if unknown := settings.keys() - KEYS:
                raise Problem(f"line {number}: unknown keys {unknown}; known are {sorted(KEYS)}")
        elif line:
            settings = {}


def is_open(command):
    """Returns true if a command ends within quotes."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return False


def split(language, lines):
    """Splits a block into its commands and the output that it shows."""
    if language == "sh":
        lines = [f"$ {line}" for line in lines]
    commands, output, continues = [], [], False
    for line in lines:
        if continues:
            commands[-1] += "\n" + line.removeprefix("$ ")
        elif line.startswith("$ "):
            commands.append(line[2:])
        else:
            output.append(line)
        continues = (continues or line.startswith("$ ")) and (line.endswith("\\") or is_open(commands[-1]))
    return [command for command in commands if command.strip()], output


def script(commands, settings):
    """Returns a bash script that ends with the first exit code besides 0 and 4."""
    *first, last = commands
    accepted = "0 | 4" if "exit" not in settings else settings["exit"]
    last = f"{last} {settings['add']}" if "add" in settings else last
    lines = ['. "$DOCUMENT_PARTS"', settings.get("before", "")]
    for command, codes in [(command, "0 | 4") for command in first] + [(last, accepted)]:
        lines.append(command)
        # The next command needs the server.
        wait = "listening; true" if command.rstrip().endswith("&") else ""
        lines.append(f"code=$?; {wait}\ncase $code in {codes}) ;; *) exit $((code ? code : 1)) ;; esac")
    return "\n".join(lines + ["exit 0"])


def first_word(line):
    """Returns the first word of a line that is no unit of a number, or nothing."""
    words = [word.lower() for word in re.findall(r"[^\W\d_]{2,}", line)]
    return next((word for word in words if word not in UNITS), None)


def check_output(shown, real):
    """Compares the first words of lines: numbers, and what a machine adds, may differ."""
    real = {first_word(line) for line in real.splitlines()}
    words = [word for line in shown if (word := first_word(line))]
    missing = [word for word in words if word not in real]
    if 2 * len(missing) > len(words):
        raise Problem(f"of {len(words)} lines shown, {len(missing)} are not in the output: {', '.join(missing[:8])}")


def run(commands, shown, settings, files, stillwell, root, shared):
    """Runs one block in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        bin = home / "bin"
        work = home / "work"
        for made in (bin, work):
            made.mkdir()
        os.symlink(stillwell, bin / "stillwell")
        for path, text in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        if any("examples/" in command for command in [*commands, settings.get("before", "")]):
            shutil.copytree(root / "examples", work / "examples")
        environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "NO_COLOR": "1",
                       "DOCUMENT_PARTS": str(root / ".ci/document-parts"), "DOCUMENTS_SHARED": shared}
        # A reader's builds go beside the reader's sources.
        environment.pop("CARGO_TARGET_DIR", None)
        with open(home / "output", "w+") as output:
            process = subprocess.Popen(["bash", "-c", script(commands, settings)], cwd=work, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       start_new_session=True)
            try:
                code = process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                code = f"none after {LIMIT_SECONDS} s"
            finally:
                # Servers that the block has started belong to its session.
                for number in (signal.SIGTERM, signal.SIGKILL):
                    try:
                        os.killpg(process.pid, number)
                        time.sleep(0.3)
                    except ProcessLookupError:
                        break
                process.wait()
            output.seek(0)
            real = output.read()
        if code == MISSING:
            raise Missing(real.strip().rpartition("\n")[2])
        if code != 0:
            raise Problem(f"exit code {code}:\n{real}")
        if shown:
            try:
                check_output(shown, real)
            except Problem as problem:
                raise Problem(f"{problem}:\n{real}") from None


def main():
    # The servers of a block are ended by `finally`.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as shared:
        return run_all(os.path.abspath(sys.argv[1]), sys.argv[2:], shared)


def run_all(stillwell, documents, shared):
    """Runs the blocks of all documents; returns true if one failed."""
    only = os.environ.get("DOCUMENTS_ONLY", "").split()
    root = pathlib.Path(__file__).resolve().parent.parent
    begun, failed, done, skipped, ran = time.monotonic(), 0, 0, 0, set()
    for document in documents:
        files = {}
        for line, language, lines, settings in blocks((root / document).read_text()):
            if "file" in settings:
                files[settings["file"]] = "\n".join(lines) + "\n"
            if language not in ("console", "sh"):
                continue
            place = f"{document}:{line}"
            if only and not any(part in place for part in only):
                continue
            reason = settings.get("skip")
            if "needs" in settings and not os.path.exists(settings["needs"]):
                reason = f"{settings['needs']} is missing"
            if reason:
                skipped += 1
                print(f"skipped  {place}: {reason}", flush=True)
                continue
            commands, shown = split(language, lines)
            if not commands:
                raise Problem(f"{place}: no command; fence output as ```text")
            again = (tuple(commands), settings.get("before"), tuple(sorted(files.items())))
            if again in ran:
                continue
            ran.add(again)
            start = time.monotonic()
            try:
                run(commands, shown, settings, files, stillwell, root, shared)
                done += 1
                print(f"ran      {place} in {time.monotonic() - start:.0f} s", flush=True)
            except Missing as missing:
                skipped += 1
                print(f"skipped  {place}: {missing}", flush=True)
            except Problem as problem:
                failed += 1
                print(f"FAILED   {place}: {problem}", flush=True)
    took = time.monotonic() - begun
    print(f"{done} blocks ran in {took:.0f} s, {skipped} skipped, {failed} failed")
    if took > TOTAL_SECONDS:
        print(f"too long: at most {TOTAL_SECONDS} s")
    return failed > 0 or took > TOTAL_SECONDS


if __name__ == "__main__":
    sys.exit(main())
