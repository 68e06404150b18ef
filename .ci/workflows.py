"""The steps of action.yml and of GitLab's job, run by a shell as those hosts do. The repository has a service whose second
commit needs more work. The release is a folder; comments go to a server on loopback that speaks both APIs."""

import hashlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

STILLWELL, ACTION, WORK = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
MARKER = "<!-- stillwell:report:v1 -->"
SHORT = "--pairs 4 --warmup 100ms --measure 300ms --no-confirm --max-time 20s"
SERVICE = """#!/usr/bin/env python3
import hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        for _ in range(ROUNDS):
            hashlib.sha256(self.path.encode()).digest()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass

ThreadingHTTPServer(("127.0.0.1", 18093), Handler).serve_forever()
"""
EXPERIMENT = """target:
  command: ["{experiment}/server"]
  ready: {http: "http://127.0.0.1:18093/"}
workload:
  generators:
    - requests: {url: "http://127.0.0.1:18093/"}
      rate: 500/s
goals: [cpu_per_event]
"""


class Host(http.server.BaseHTTPRequestHandler):
    """Comments of one pull request: list, create, replace."""

    comments = []

    def reply(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def text(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]

    def do_GET(self):
        self.reply(200, [{"id": at, "body": text} for at, text in enumerate(self.comments, 1)])

    def do_POST(self):
        self.comments.append(self.text())
        self.reply(201, {})

    def do_PATCH(self):
        self.comments[int(self.path.rsplit("/", 1)[1]) - 1] = self.text()
        self.reply(200, {})

    do_PUT = do_PATCH

    def log_message(self, *args):
        pass


def expect(failure, is_met, log=""):
    if not is_met:
        sys.exit(f"{failure}\n{log}")


def make_release(folder):
    folder.mkdir(parents=True)
    (folder / "stillwell").symlink_to(STILLWELL)
    digest = hashlib.sha256(pathlib.Path(STILLWELL).read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest}  stillwell\n")


def make_repository(folder):
    """Returns both commits."""
    folder.mkdir()

    def git(*words):
        command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *words]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    commits = []
    for rounds in [10, 1000]:
        (folder / "service.py").write_text(SERVICE.replace("ROUNDS", str(rounds)))
        (folder / "experiment.yaml").write_text(EXPERIMENT)
        git("add", ".")
        git("commit", "--quiet", "-m", f"{rounds} rounds")
        commits.append(git("rev-parse", "HEAD"))
    return commits


def read_action():
    """Returns the defaults of the inputs, and the scripts of the steps with their environments."""
    text = ACTION.read_text()
    inputs = text[text.index("inputs:"):text.index("outputs:")]
    defaults = dict(re.findall(r'^  ([a-z-]+):\n    description: .*\n(?:    required: .*\n)?    default: "?(.*?)"?$', inputs, re.M))
    steps = []
    for step in re.split(r"^    - name: ", text, flags=re.M)[1:]:
        script = re.search(r"^      run: \|\n((?:        .*\n|\n)+)", step, re.M)
        if script:
            variables = re.findall(r"^        ([A-Z_]+): \$\{\{ (.*) \}\}$", step, re.M)
            steps.append((variables, re.sub(r"^        ", "", script[1], flags=re.M)))
    return defaults, steps


def base_environment(home):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(WORK),
            "LANG": os.environ.get("LANG", "C.UTF-8")}


def run_action(name, repository, api, **inputs):
    """Returns exit code, the summary, the outputs and the log of the steps."""
    defaults, steps = read_action()
    home = WORK / name
    (home / "temp").mkdir(parents=True)
    values = {**defaults, **inputs}
    context = {f"inputs.{key.replace('_', '-')}": value for key, value in values.items()}
    context["inputs.version || github.action_ref"] = "v0"
    context["github.action_repository"] = ""
    files = {key: home / key for key in ["GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"]}
    environment = {**base_environment(home), **{key: str(file) for key, file in files.items()},
                   "RUNNER_TEMP": str(home / "temp"), "GITHUB_ACTIONS": "true", "GITHUB_API_URL": api,
                   "GITHUB_SERVER_URL": f"file://{WORK}", "GITHUB_REPOSITORY": "owner/name",
                   "GITHUB_REF": "refs/pull/7/merge"}
    log = ""
    for variables, script in steps:
        step_environment = {key: context[expression] for key, expression in variables}
        if files["GITHUB_PATH"].exists():
            environment["PATH"] = f"{files['GITHUB_PATH'].read_text().strip()}:{environment['PATH']}"
        completed = subprocess.run(["bash", "-c", script], cwd=repository, env={**environment, **step_environment}, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        log += completed.stdout
        if completed.returncode:
            break
    texts = [file.read_text() if file.exists() else "" for file in files.values()]
    return completed.returncode, texts[2], texts[1], log


def run_gitlab(name, repository, api, base):
    """Returns the exit code of the job's script, and its output."""
    home = WORK / name
    home.mkdir()
    subprocess.run([STILLWELL, "init", "--ci", "gitlab", "--build", "cp service.py server && chmod +x server",
                    "--build-output", "server", "--force"], cwd=repository, check=True, capture_output=True)
    job = (repository / ".gitlab/stillwell.yml").read_text()
    script = job[job.index("  script:\n"):job.index("  artifacts:")]
    lines = re.findall(r"^    - (.*)$", script, re.M)
    lines = [json.loads(line) if line.startswith('"') else line for line in lines]
    text = "\n".join(lines).replace("--quiet", f"--quiet {SHORT}")
    text = re.sub(r"release=\S*/releases/download/\S*", f"release=file://{WORK}/stillwell-rs/stillwell/releases/download/v0", text)
    environment = {**base_environment(home), "GITLAB_CI": "true", "CI_API_V4_URL": f"{api}/api/v4", "CI_PROJECT_ID": "42",
                   "CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "STILLWELL_GITLAB_TOKEN": "secret"}
    completed = subprocess.run(["bash", "-c", f"set -eo pipefail\n{text}"], cwd=repository, env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return completed.returncode, completed.stdout


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}"
    make_release(WORK / "stillwell-rs/stillwell/releases/download/v0")
    repository = WORK / "repository"
    base, head = make_repository(repository)
    inputs = {"suite": ".", "baseline": f"git:{base}", "comparison": f"git:{head}", "arguments": SHORT, "token": "secret",
              "build": "cp service.py server && chmod +x server", "build_output": "server"}

    # A busy machine may make pairs unreliable; 0 is then possible, too.
    code, summary, output, log = run_action("action", repository, api, **inputs)
    expect(f"exit code {code}", code in (0, 1, 4) and f"exit-code={code}" in output, log)
    expect("no comment", len(Host.comments) == 1 and Host.comments[0].startswith(MARKER), log)
    expect("no summary", summary.startswith(MARKER) and "CPU per" in summary, summary)
    print(f"action: exit code {code}: {Host.comments[0].splitlines()[1]}")

    code, summary, _, log = run_action("broken", repository, api, **{**inputs, "build": "echo no compiler; false"})
    expect(f"exit code {code}", code == 3, log)
    expect("the comment was not replaced", len(Host.comments) == 1, log)
    for text in [summary, Host.comments[0]]:
        expect("no reason", "could not run" in text and "no compiler" in text and "stillwell run" in text, text)
    print(f"broken build: exit code {code}: {Host.comments[0].splitlines()[1]}")

    Host.comments.clear()
    code, summary, _, log = run_action("fork", repository, api, **{**inputs, "token": ""})
    expect(f"exit code {code}", code in (0, 1, 4), log)
    expect("a fork has no comment but a summary", not Host.comments and MARKER in summary, log)
    print(f"fork: exit code {code}, a summary and no comment")

    code, log = run_gitlab("gitlab", repository, api, base)
    expect(f"exit code {code}", code in (0, 1, 4), log)
    expect("no comment", len(Host.comments) == 1 and Host.comments[0].startswith(MARKER), log)
    print(f"gitlab: exit code {code}: {Host.comments[0].splitlines()[1]}")


main()
