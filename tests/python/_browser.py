"""A real browser without a window, told what to do through a pipe by the DevTools protocol: Debian's
chromium-headless-shell, and nothing else that would have to be installed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium-headless-shell", "chromium", "google-chrome")


class Browser:
    """One tab. `do` runs JavaScript in it, `until` waits for what it says to be true."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = 0
        self.console: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def size(self, width: int, height: int = 900) -> None:
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on: bool = True) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def open(self, address: str) -> None:
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)

    def load(self, address: str) -> None:
        """Opens another page and waits until all of it is there. A script that is run during the change of pages may
        get no answer."""
        loaded = self._loaded
        self._call("Page.navigate", url=address)
        while self._loaded == loaded:
            self._note(self._read())

    def do(self, script: str) -> Any:
        """What `script`, a JavaScript expression, comes to."""
        found = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 20) -> Any:
        """Waits until `script` is true, and gives what it comes to."""
        end = time.monotonic() + seconds
        while not (found := self.do(script)):
            assert time.monotonic() < end, f"{script}: not within {seconds} s; the page says:\n{self.text()}"
            time.sleep(0.02)
        return found

    def text(self) -> str:
        return str(self.do("document.body ? document.body.innerText : ''"))

    def picture(self, path: Path, whole: bool = True) -> None:
        found = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            said = self._read()
            if said.get("id") == self._number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]
            self._note(said)

    def _note(self, event: Any) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Page.loadEventFired":
            self._loaded += 1
        elif event.get("method") == "Runtime.exceptionThrown":
            self.console.append(json.dumps(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded":
            self.console.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def _read(self) -> Any:
        while b"\0" not in self._buffer:
            data = os.read(self._back, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


def program() -> str | None:
    """The browser of this machine; None: there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose profile and log are in `folder`; skips the test where there is none."""
    found = program()
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(_NAMES)} is installed")
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    options = [
        "--headless",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder / 'profile'}",
        "--no-first-run",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--hide-scrollbars",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
    ]
    # It reads what it is told from descriptor 3 and answers on 4.
    command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", found, *options]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stdout=log, stderr=log)
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        process.wait(30)
