"""Makes two images of one layer, with the program, its libraries and `sleep`: `stillwell.test/stillwell:1`, and
`stillwell.test/pause:1`, which only sleeps. Engines load them from one archive.

    python3 .ci/image.py PROGRAM ARCHIVE
"""
import hashlib, io, json, pathlib, re, subprocess, sys, tarfile, tempfile

program, out = sys.argv[1:]
libraries = re.findall(r"(/\S+) \(", subprocess.check_output(["ldd", program, "/bin/sleep"], text=True))
buffer = io.BytesIO()
layer = tarfile.open(fileobj=buffer, mode="w")
def put(name, data, mode=0o755):
    info = tarfile.TarInfo(name.lstrip("/"))
    info.mode, info.size = mode, len(data)
    layer.addfile(info, io.BytesIO(data))
with tempfile.TemporaryDirectory() as folder:
    stripped = pathlib.Path(folder, "stillwell")
    subprocess.run(["strip", "--strip-debug", "-o", stripped, program], check=True)
    put("usr/bin/stillwell", stripped.read_bytes())
put("bin/sleep", open("/bin/sleep", "rb").read())
for library in sorted(set(libraries)):
    put(library, open(library, "rb").read())
layer.close()
layer = buffer.getvalue()
digest = hashlib.sha256(layer).hexdigest()
archive, manifest = tarfile.open(out, "w"), []
def add(name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
for tag, entry in (("stillwell.test/stillwell:1", ["/usr/bin/stillwell"]), ("stillwell.test/pause:1", ["/bin/sleep", "infinity"])):
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Entrypoint": entry},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}, "history": [{"created_by": "test"}]}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    add(name, config)
    manifest.append({"Config": name, "RepoTags": [tag], "Layers": [digest + ".tar"]})
add(digest + ".tar", layer)
add("manifest.json", json.dumps(manifest).encode())
archive.close()
