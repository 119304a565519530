"""A heap with the largest key on top, in two arrays that their owner keeps."""

from __future__ import annotations

from isthmus.numerics.jit import inner


@inner
def push(keys, items, size, key, item):  # type: ignore[no-untyped-def]
    """Add an item to a heap of ``size``, which its owner then counts up."""
    i = size
    while i > 0:
        up = (i - 1) >> 1
        if keys[up] >= key:
            break
        keys[i], items[i] = keys[up], items[up]
        i = up
    keys[i], items[i] = key, item


@inner
def pop(keys, items, size):  # type: ignore[no-untyped-def]
    """Take the top off a heap of ``size``, which its owner then counts down."""
    top = items[0]
    n = size - 1
    key, item = keys[n], items[n]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= n:
            break
        if down + 1 < n and keys[down + 1] > keys[down]:
            down += 1
        if keys[down] <= key:
            break
        keys[i], items[i] = keys[down], items[down]
        i = down
    if n > 0:
        keys[i], items[i] = key, item
    return top
