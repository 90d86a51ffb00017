"""Follow the recipes of CONTRIBUTING.md in a copy of the package.

A recipe is a section with blocks of Python or JavaScript. The first line of a block is a comment that names its file:
`# src/blendctl/x.py` makes a new file, `# src/blendctl/x.py, after: TEXT` inserts the block after the first line that
contains TEXT.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(
    r"^```(?:python|js)\n(?:#|//) (?P<path>src/[^\s,]+)(?:, after: (?P<after>[^\n]+))?\n(?P<code>.*?)^```$", re.M | re.S
)


class RecipeCopy:
    """A copy of the package in which the recipe under a heading of CONTRIBUTING.md has been followed."""

    def __init__(self, folder, heading):
        # Times are kept, so the kernels that numba has compiled stay valid.
        shutil.copytree(ROOT / "src", folder / "src")
        self.folder = folder
        self.files = []
        for block in BLOCK.finditer(section(heading)):
            path = folder / block["path"]
            self.files.append(block["path"])
            if block["after"] is None:
                assert not path.exists(), f"{block['path']} exists"
                path.write_text(block["code"])
            else:
                before, line, rest = re.split(
                    rf"^(.*{re.escape(block['after'])}.*\n)", path.read_text(), maxsplit=1, flags=re.M
                )
                path.write_text(before + line + block["code"] + rest)
        assert self.files, f"the recipe {heading!r} has no blocks"

    def run(self, *words):
        """Run `python -m ...` with the copy; return its output."""
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src")}
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def section(heading):
    """Return the text under a heading of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)[1]
