"""Preprocessor of mdbook, which starts it by docs/book/book.toml.

The pages of the documentation link to each other and to files of the repository. This makes chapters of the pages
in the repository's root and of all decision records. Links to a chapter stay within the book; links to any other file lead to
the repository.
"""

import json
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOT_PAGES = {
    "METHODOLOGY.md": "Methodology",
    "GLOSSARY.md": "Glossary",
    "ARCHITECTURE.md": "Architecture",
    "CONTRIBUTING.md": "Contributing",
    "CHANGELOG.md": "Changelog",
}
RECORDS = "docs/adr"
CODE = re.compile(r"(`+[^`]*`+)")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def chapter(name, path, source, parents):
    """Returns a chapter as mdbook represents it."""
    return {
        "Chapter": {
            "name": name,
            "content": (ROOT / source).read_text(),
            "number": None,
            "sub_items": [],
            "path": path,
            "source_path": path,
            "parent_names": parents,
            "repository_path": source,
        }
    }


def chapters(items):
    """Yields all chapters, those in chapters included."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def add_chapters(items):
    """Adds the decision records below their list, and the pages of the root."""
    for each in chapters(items):
        if each.get("source_path"):
            each["repository_path"] = f"docs/{each['source_path']}"
    records = next(each for each in chapters(items) if each["repository_path"] == f"{RECORDS}/README.md")
    for path in sorted((ROOT / RECORDS).glob("0*.md")):
        name = path.read_text().splitlines()[0].lstrip("# ")
        where = f"adr/{path.name}"
        records["sub_items"].append(chapter(name, where, f"docs/{where}", [records["name"]]))
    for source, name in ROOT_PAGES.items():
        items.append(chapter(name, source, source, []))


def rewrite(text, change):
    """Applies `change` to the address of each link outside of code."""
    lines, fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            parts = CODE.split(line)
            parts[::2] = [LINK.sub(lambda link: link[1] + change(link[2]) + link[3], part) for part in parts[::2]]
            line = "".join(parts)
        lines.append(line)
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    repository = context["config"]["output"]["html"]["git-repository-url"]
    items = book["items"] if "items" in book else book["sections"]
    add_chapters(items)
    paths = {each["repository_path"]: each["path"] for each in chapters(items) if each.get("path")}
    for each in chapters(items):
        source = each.pop("repository_path", None)
        if source is None:
            continue
        here = posixpath.dirname(each["path"])

        def change(address):
            file, sign, fragment = address.partition("#")
            if not file or "://" in file or file.startswith("mailto:"):
                return address
            target = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
            if target in paths:
                return posixpath.relpath(paths[target], here or ".") + sign + fragment
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            return f"{repository}/{kind}/main/{target}{sign}{fragment}"

        each["content"] = rewrite(each["content"], change)
    json.dump(book, sys.stdout)


main()
