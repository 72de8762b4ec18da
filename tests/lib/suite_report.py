"""The line that the runners add up: "suite NAME: N passed, N failed". Used by the conftest.py of each Python suite."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import octavo_server  # noqa: E402


def configure(config):
    path = octavo_server.program()
    if not os.access(path, os.X_OK):
        print(f"there is no daemon to test: {path}")
        print(f"suite {os.environ.get('SUITE', 'pytest')}: 0 passed, 1 failed")
        sys.stdout.flush()
        os._exit(1)


def summary(reporter, exitstatus):
    stats = reporter.stats
    passed = len(stats.get("passed", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    if exitstatus not in (0, 1) and failed == 0:
        failed = 1
    skipped = stats.get("skipped", [])
    line = f"suite {os.environ.get('SUITE', 'pytest')}: {passed} passed, {failed} failed"
    if skipped:
        why = sorted({r.longrepr[2].removeprefix("Skipped: ") for r in skipped if isinstance(r.longrepr, tuple)})
        line += f", {len(skipped)} skipped ({'; '.join(why)})"
    reporter.write_line(line)
