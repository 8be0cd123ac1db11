"""Fixtures for the browser tests: the real app on a free port, and Debian's Chromium.

A missing browser is a failure where CI is set, and a skip with a reason elsewhere.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = Path("/usr/bin/chromium")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]


@pytest.fixture(scope="session")
def browser():
    """One headless Chromium for all browser tests."""
    if not CHROMIUM.exists():
        reason = f"no browser at {CHROMIUM}: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture
def tab(browser):
    """A fresh page; an error in its console fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    yield page
    context.close()
    assert mistakes == []


@pytest.fixture(scope="session")
def app(browser) -> Iterator[str]:
    """The address of a running app."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py")]
    server = subprocess.Popen(
        [*command, "--server.port", str(port), "--server.headless", "true"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://localhost:{port}"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, "the app stopped"
                time.sleep(0.1)
        else:
            pytest.fail("the app did not start")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=10)
