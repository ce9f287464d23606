"""Resident memory of a process and all its descendants.

A limit on the address space would be simpler and wrong: runtimes such as V8 and Go reserve many gigabytes that they never touch.
"""

from __future__ import annotations

import contextlib

import psutil


def process_tree(pid: int) -> list[psutil.Process]:
    """Give the process and its descendants, as far as they still live."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def resident_size(pid: int) -> int:
    """Give the sum of the resident sizes (bytes) of the process tree; pages that processes share count for each of them."""
    total = 0
    for process in process_tree(pid):
        # One that ends between the listing and the reading holds nothing any more.
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total
