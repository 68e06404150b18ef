"""Part of .ci/book: checks a built book and a list of crates.

    book.py links FOLDER          every link leads to a file of the book, and to an element that it has
    book.py sbom FILE METADATA    FILE has every crate that the program links, by `cargo metadata`
"""

import html.parser
import json
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The addresses and the names of elements in a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ("href", "src") and value:
                self.addresses.append(value)
            elif key in ("id", "name") and value:
                self.names.add(value)


def links(folder):
    folder = pathlib.Path(folder).resolve()
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    broken, count = [], 0
    for path, page in pages.items():
        # This page is made for any folder, and all pages in one for printing.
        if path.name in ("404.html", "print.html", "toc.html"):
            continue
        for address in page.addresses:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = path.parent / urllib.parse.unquote(parts.path) if parts.path else path
            target = pathlib.Path(target).resolve()
            target = target / "index.html" if target.is_dir() else target
            fragment = urllib.parse.unquote(parts.fragment)
            where = f"{path.relative_to(folder)}: {address}"
            if folder not in target.parents or not target.exists():
                broken.append(f"{where}: no such file")
            elif fragment and target in pages and fragment not in pages[target].names:
                broken.append(f"{where}: no such element")
    print(f"{len(pages)} pages, {count} links, {len(broken)} of them broken")
    if broken or not count:
        sys.exit("\n".join(broken) or "no link was found")


def linked(metadata):
    """Returns name and version of each crate that the program links, in any of its targets."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(identity for identity, package in packages.items() if package["name"] == "stillwell")
    visited, open_ids = set(), [root]
    while open_ids:
        identity = open_ids.pop()
        if identity in visited:
            continue
        visited.add(identity)
        for dependency in nodes[identity]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                open_ids.append(dependency["pkg"])
    return {(packages[each]["name"], packages[each]["version"]) for each in visited - {root}}


def sbom(path, metadata):
    bill = json.loads(pathlib.Path(path).read_text())
    if bill["bomFormat"] != "CycloneDX" or bill["metadata"]["component"]["name"] != "stillwell":
        sys.exit("this is no list of CycloneDX for stillwell")
    listed = {(part["name"], part["version"]) for part in bill["components"]}
    missing = linked(json.loads(pathlib.Path(metadata).read_text())) - listed
    unlicensed = [part["name"] for part in bill["components"] if not part.get("licenses")]
    print(f"{len(listed)} crates listed, {len(missing)} missing, {len(unlicensed)} without a licence")
    if missing or unlicensed:
        sys.exit(f"missing: {sorted(missing)}\nwithout a licence: {unlicensed}")


def main():
    command, *arguments = sys.argv[1:]
    {"links": links, "sbom": sbom}[command](*arguments)


main()
