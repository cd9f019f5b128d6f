"""What applications that run as programs of their own share: steps with names, and a browser for their pages.

Applications have no suite that passes or fails test by test: what their users do is done, a step at a time, and a step that fails
is one failed test. Later steps go on, and most fail with it.
"""

import contextlib
import http.cookiejar
import json
import os
import pathlib
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from omnibus import expect, free_port, wait_for


class Steps:
    """Each `with steps("name"):` is a test."""

    def __init__(self, application):
        self.application, self.failed, self.count = application, set(), 0

    @contextlib.contextmanager
    def __call__(self, name):
        self.count += 1
        try:
            yield
        except (SystemExit, Exception) as problem:
            self.failed.add(name)
            print(f"  {self.application}: {name}: {str(problem)[:600]}", flush=True)

    def result(self):
        return self.failed, self.count


class Pages:
    """PHP's own web server over a folder, and a client with cookies. What PHP logs is kept: pages hide errors of the database."""

    def __init__(self, folder, scratch, *options, **env):
        self.port, self.log_path = free_port(), pathlib.Path(scratch) / "php.log"
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.base, self.read_to = f"http://127.0.0.1:{self.port}", 0
        env = dict(os.environ, PHP_CLI_SERVER_WORKERS="3", PROGRAMS_PORT=str(self.port), **{name: str(value) for name, value in env.items()})
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(["php", "-d", "memory_limit=512M", *options, "-S", f"127.0.0.1:{self.port}", "-t", folder], env=env,
                                            stdout=log, stderr=log, start_new_session=True)
        wait_for(lambda: "started" in self.log_path.read_text(), "PHP's server does not start")

    def get(self, path, data=None, headers=None, method=None, fails=False):
        """A page's text. Fields are a form, anything else is JSON."""
        headers = dict(headers or {})
        if isinstance(data, dict) and headers.pop("json", None):
            data, headers["Content-Type"] = json.dumps(data).encode(), "application/json"
        elif isinstance(data, dict):
            data = urllib.parse.urlencode(data).encode()
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                return answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            expect(fails, f"{path}: {error.code}: {plain(text)[:500]}")
            return text

    def said(self):
        """What was logged since this was last asked."""
        text = self.log_path.read_text(errors="replace")
        new, self.read_to = text[self.read_to:], len(text)
        return new

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def plain(page):
    """A page's words."""
    return " ".join(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.S).split())
