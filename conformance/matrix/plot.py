"""Small pictures: distances in ulps, a bar for each power of two, its height the logarithm of the count; and shares of a whole."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from conformance.printable import number

# Distances between float32 have at most 33 bits.
PLACES = 34
_BAR, _HEIGHT = 3, 18
_WIDE_BAR, _WIDE_HEIGHT = 44, 120
_SHARES_WIDTH, _SHARES_HEIGHT = 200, 12


def power_text(place: int) -> str:
    """Say which distances are counted at a place: ``0``, ``1``, ``2 to 3``, ``1,024 to 2,047``; from 2^20 on as powers."""
    if place < 2:
        return str(place)
    if place > 20:
        return f"2^{place - 1} to 2^{place}"
    return f"{number(1 << (place - 1))} to {number((1 << place) - 1)}"


def spread_text(spread: Sequence[int]) -> str:
    """Tell a spread in words: ``20 of 1 ulp, 5 of 2 to 3 ulps``."""
    return ", ".join(f"{number(count)} of {power_text(place)} {_unit(place)}" for place, count in enumerate(spread) if count)


def _unit(place: int) -> str:
    return "ulp" if place == 1 else "ulps"


def small_plot(spread: Sequence[int]) -> Markup:
    """Give a picture of the size of a few letters, told in words by its title; nothing where nothing was counted."""
    if not any(spread):
        return Markup("")
    bars = "".join(
        f"M{place * _BAR} {_HEIGHT}v-{height:g}h{_BAR - 1}v{height:g}z" for place, height in _heights(spread, _HEIGHT) if height
    )
    width = max(len(spread), 12) * _BAR
    return Markup(
        '<svg class="spark" role="img" width="{}" height="{}" viewBox="0 0 {} {}"><title>{}</title><path d="{}"/></svg>'
    ).format(width, _HEIGHT, width, _HEIGHT, spread_text(spread), bars)


def wide_plot(spread: Sequence[int]) -> Markup:
    """Give the same with the counts above the bars and the distances below."""
    if not any(spread):
        return Markup("")
    width, height = len(spread) * _WIDE_BAR, _WIDE_HEIGHT + 34
    return Markup('<svg class="plot" role="img" width="{}" height="{}" viewBox="0 0 {} {}"><title>{}</title>{}</svg>').format(
        width, height, width, height, spread_text(spread), Markup("").join(_wide_bars(spread))
    )


def _wide_bars(spread: Sequence[int]) -> Iterator[Markup]:
    bottom = _WIDE_HEIGHT + 16
    for place, height in _heights(spread, _WIDE_HEIGHT):
        left, middle = place * _WIDE_BAR, place * _WIDE_BAR + _WIDE_BAR // 2
        if height:
            yield Markup('<rect x="{}" y="{:g}" width="{}" height="{:g}"/>').format(
                left + 4, bottom - height, _WIDE_BAR - 8, height
            )
            yield Markup('<text x="{}" y="{:g}">{}</text>').format(middle, bottom - height - 4, _short(spread[place]))
        yield Markup('<text x="{}" y="{}">{}</text>').format(middle, bottom + 14, _from(place))


def _from(place: int) -> str:
    """Give the least distance that is counted at a place, as short as it goes: ``64``, ``2^20``."""
    return str(place if place < 2 else 1 << (place - 1)) if place <= 10 else f"2^{place - 1}"


def _short(count: int) -> str:
    return number(count) if count < 10_000 else f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"


def _heights(spread: Sequence[int], full: int) -> Iterator[tuple[int, float]]:
    """Give each place's height: a count of 1 is seen, the largest count takes all of it."""
    top = math.log2(max(spread) + 1)
    for place, count in enumerate(spread):
        yield place, round(max(2.0, full * math.log2(count + 1) / top), 1) if count else 0.0


def shares(counts: Mapping[str, int]) -> Markup:
    """Give a bar of parts in order; the class of each is its name, and none that counts anything is too narrow to be seen."""
    present = {name: count for name, count in counts.items() if count}
    total = sum(present.values())
    if not total:
        return Markup("")
    widths = {name: max(2.0, _SHARES_WIDTH * count / total) for name, count in present.items()}
    scale = _SHARES_WIDTH / sum(widths.values())
    left, parts = 0.0, []
    for name, width in widths.items():
        rect = Markup('<rect class="{}" x="{:g}" y="0" width="{:g}" height="{}"><title>{}: {}</title></rect>')
        parts.append(rect.format(name, round(left, 1), round(width * scale, 1), _SHARES_HEIGHT, name, number(present[name])))
        left += width * scale
    told = ", ".join(f"{name} {number(count)}" for name, count in present.items())
    return Markup('<svg class="shares" role="img" width="{}" height="{}" viewBox="0 0 {} {}" aria-label="{}">{}</svg>').format(
        _SHARES_WIDTH, _SHARES_HEIGHT, _SHARES_WIDTH, _SHARES_HEIGHT, told, Markup("").join(parts)
    )
