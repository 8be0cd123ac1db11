"""Where assets, lessons and the app lie: in the checkout, or inside the wheel."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
_BUNDLED = PACKAGE / "_bundled"
ROOT = _BUNDLED if _BUNDLED.is_dir() else PACKAGE.parent
ASSETS = ROOT / "assets"
LESSONS = ROOT / "lessons"
APP = ROOT / "app.py"


def kernel_folder() -> Path:
    """Where generated kernels go: `MINIGRAD_CACHE`, the user's cache, or a private folder."""
    asked = os.environ.get("MINIGRAD_CACHE")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(asked) if asked else cache / "minigrad"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return _private_folder()


@lru_cache
def _private_folder() -> Path:
    """A folder of this process's own: nobody else can have put a kernel there."""
    return Path(tempfile.mkdtemp(prefix="minigrad-"))
