"""Starts octavod for tests: on a port of its own, with data in a folder of its own."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

SLOW = float(os.environ.get("SLOW", "1"))  # time limits are multiplied by this: sanitizers are slow


def program():
    return os.environ.get("OCTAVOD") or os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "release", "octavod"
    )


class Server:
    """One octavod. `args` are added to its command line. The folder lives until close(), over restarts and kills."""

    def __init__(self, *args, dbpath=None, env=None):
        self.args = list(args)
        self.env = env or {}
        self.owns_dbpath = dbpath is None
        self.dbpath = dbpath or tempfile.mkdtemp(prefix="octavo-test-")
        self.process = None
        self.port = None
        self.log = []  # every line it printed since the first start
        self.stopped_badly = []  # exit statuses that were neither 0 nor asked for
        self.start()

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/"

    def start(self, timeout=20):
        ready = threading.Event()
        self.port = None
        self.process = subprocess.Popen(
            [program(), "--port", "0", "--dbpath", self.dbpath, *self.args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **self.env},
        )
        self.reader = threading.Thread(target=self._read, args=(self.process.stdout, ready), daemon=True)
        self.reader.start()
        deadline = time.monotonic() + timeout * SLOW
        while not ready.wait(0.02):
            if self.process.poll() is not None:
                self.reader.join(2)
                raise RuntimeError(f"octavod ended with status {self.process.returncode} while starting:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"octavod did not say that it is ready within {timeout * SLOW} s:\n{self.tail()}")
        return self

    def _read(self, stream, ready):
        for raw in stream:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            self.log.append(line)
            uri = re.match(r"\s*mongodb://[^/]*:(\d+)", line)
            if uri:
                self.port = self.port or int(uri.group(1))
            if '"Waiting for connections"' in line:
                try:
                    self.port = self.port or int(json.loads(line)["attr"]["port"])
                except (ValueError, KeyError):
                    pass
                if self.port:
                    ready.set()

    def tail(self, lines=40):
        return "\n".join(self.log[-lines:])

    def stop(self, timeout=20):
        """Ends it with SIGTERM and returns the exit status: 0 for a clean end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            self.reader.join(5)
            raise RuntimeError(f"octavod did not end within {timeout * SLOW} s of SIGTERM:\n{self.tail()}") from None
        self.reader.join(5)
        if status != 0:
            self.stopped_badly.append(status)
        return status

    def kill(self):
        """SIGKILL: what a crash of the daemon leaves behind."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(5)

    def restart(self):
        status = self.stop()
        if status != 0:
            raise RuntimeError(f"octavod ended with status {status}:\n{self.tail()}")
        return self.start()

    def crash_and_restart(self):
        self.kill()
        return self.start()

    def alive(self):
        return self.process.poll() is None

    def close(self):
        """Ends it and removes its data. Returns the exit status."""
        status = self.process.returncode if self.process.poll() is not None else self.stop()
        if self.owns_dbpath:
            shutil.rmtree(self.dbpath, ignore_errors=True)
        return status
