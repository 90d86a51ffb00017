"""A real browser for tests: headless Chromium, controlled over its DevTools protocol."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HOW = "no Chromium: install it with `make setup-browser` as root, or with your package manager"


def find_chromium():
    """Return the path of a Chromium or Chrome; None if there is none."""
    named = os.environ.get("BLENDCTL_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One Chromium process with one tab that all pages share: new windows open slowly."""

    def __init__(self, home):
        command = [
            find_chromium(), "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={home}",
            "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-extensions",
            "--disable-renderer-backgrounding", "--disable-backgrounding-occluded-windows",
            "--disable-background-timer-throttling", "--disable-features=PaintHolding,Translate",
            "--mute-audio", "--force-color-profile=srgb", "about:blank",
        ]  # fmt: skip
        self.log = Path(home, "chromium.log").open("wb")  # noqa: SIM115  # closed with the browser
        environment = os.environ | {"HOME": str(home)}  # which may be read-only
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        port_file = Path(home, "DevToolsActivePort")
        deadline = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().count("\n")):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.log.flush()
                raise RuntimeError(f"Chromium did not start:\n{Path(self.log.name).read_text()[-2000:]}")
            time.sleep(0.05)
        port, path = port_file.read_text().split("\n")[:2]
        self.open_things = ExitStack()
        address = f"ws://127.0.0.1:{port}{path}"
        self.socket = self.open_things.enter_context(connect(address, max_size=None, open_timeout=60))
        self.numbers = itertools.count(1)
        self.events = []
        tab = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.tab = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)["sessionId"]

    def call(self, method, session=None, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self.socket.recv(timeout=120))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def close(self):
        self.open_things.close()
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


class Page:
    """What the tab shows, with a log of its errors and requests."""

    def __init__(self, browser, *, width=1280, height=900, phone=False, dark=False, reduced_motion=False):
        self.browser = browser
        self.session = browser.tab
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank' && document.readyState === 'complete'")
        browser.events.clear()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height, phone=phone)
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if reduced_motion else "no-preference"},
        ]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def resize(self, width, height, *, phone=False):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip

    def open(self, address):
        self.call("Page.navigate", url=str(address))
        self.wait("window.blendctl !== undefined")

    def run(self, expression):
        """Evaluate JavaScript and return its value."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, expression, seconds=120):
        deadline = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"still false: {expression}; errors of the page: {self.complaints()}")
            time.sleep(0.03)

    def settle(self):
        """Wait until changes are drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1,
                buttons=1 if kind == "mousePressed" else 0,
            )  # fmt: skip

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def box(self, selector):
        """Scroll an element into view; return its left, top, width and height."""
        return self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )

    def click_on(self, selector):
        left, top, width, height = self.box(selector)
        self.click(left + width / 2, top + height / 2)

    def press(self, key, *, shift=False):
        text = {"text": key} if len(key) == 1 else {}
        code = {"code": "Space"} if key == " " else {}
        modifiers = 8 if shift else 0
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers, **code)

    def screenshot(self, path, *, whole=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(picture["data"]))

    def _clip(self, whole):
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def _events(self, method):
        self.run("0")  # pending events arrive before its answer
        return [
            event["params"]
            for event in self.browser.events
            if event["method"] == method and event.get("sessionId") == self.session
        ]

    def complaints(self):
        """Return errors and warnings of the console, exceptions, and violations of the content policy."""
        thrown = [str(event["exceptionDetails"]) for event in self._events("Runtime.exceptionThrown")]
        logged = [
            str(event["args"])
            for event in self._events("Runtime.consoleAPICalled")
            if event["type"] in ("error", "warning", "assert")
        ]
        noted = [
            event["entry"]["text"]
            for event in self._events("Log.entryAdded")
            if event["entry"]["level"] in ("error", "warning")
        ]
        return thrown + logged + noted

    def requests(self):
        """Return the addresses of all requests."""
        return [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def close(self):
        for domain in ("Network", "Log", "Runtime", "Page"):
            self.call(f"{domain}.disable")
        self.call("Page.navigate", url="about:blank")  # closes connections
