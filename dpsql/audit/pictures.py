"""Pictures of a report as SVG text: how near the pairs came to every claim, and what samples show of what is claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 460, 240, 46, 40, 14
BINS = 10
INK, FILL, BAD = "#555", "#3b6ea5", "#a11212"


def tightness_picture(shares: Sequence[float]) -> str:
    """Draw the number of questions by the share of their claim that they reached, in ten bars, and one for shares above 1."""
    counts = [0] * (BINS + 1)
    for share in shares:
        counts[BINS if share > 1 else min(BINS - 1, int(share * BINS))] += 1
    most = max(1, *counts)
    step = (WIDTH - LEFT) / (BINS + 1)
    parts = []
    for number, count in enumerate(counts):
        size = (HEIGHT - TOP - BOTTOM) * count / most
        x, y = LEFT + number * step, HEIGHT - BOTTOM - size
        words = "more than the claim" if number == BINS else f"{number / BINS:.1f} to {(number + 1) / BINS:.1f}"
        colour = BAD if number == BINS else FILL
        parts.append(
            f'<rect x="{x + 2:.1f}" y="{y:.1f}" width="{step - 4:.1f}" height="{size:.1f}" fill="{colour}">'
            f"<title>{words}: {count}</title></rect>"
        )
        if count:
            parts.append(_text(x + step / 2, y - 3, str(count)))
    edge, below = LEFT + step * BINS, HEIGHT - BOTTOM + 14
    labels = [_text(LEFT, below, "0"), _text(LEFT + step * BINS / 2, below, "0.5"), _text(edge - 2, below, "1", "end")]
    above = _text(edge + 4, below, "above", "start")
    axes = _axes("share of the claimed distance that was reached", "questions")
    return _picture("How near the pairs of databases came to every claim", [*parts, *labels, above, axes])


def bounds_picture(points: Iterable[tuple[float, float, str]]) -> str:
    """Draw for each question (claimed epsilon, lower bound by samples, words) a dot at bound / claim, largest first; above
    the line it would be a finding."""
    dots = sorted(((bound / claimed, words) for claimed, bound, words in points if claimed > 0), reverse=True)
    most = max(1.2, *(share for share, _ in dots)) if dots else 1.2

    def height(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share / most

    line = f'<line x1="{LEFT}" x2="{WIDTH}" y1="{height(1):.1f}" y2="{height(1):.1f}" stroke="{INK}" stroke-dasharray="4 3"/>'
    parts = [line, _text(WIDTH, height(1) - 5, "claimed", "end")]
    for number, (share, words) in enumerate(dots):
        x = LEFT + (WIDTH - LEFT) * (number + 0.5) / len(dots)
        circle = f'<circle cx="{x:.1f}" cy="{height(share):.1f}" r="3" fill="{BAD if share > 1 else FILL}">'
        parts.append(f"{circle}<title>{escape(words)}: {share:.2f} of what is claimed</title></circle>")
    parts += [_text(LEFT - 6, height(share) + 4, f"{share:g}", "end") for share in (0, 0.5, 1)]
    parts.append(_axes("questions, each a dot", "epsilon by samples / claimed"))
    return _picture("The least epsilon that samples allow, as a share of the claim: below the line all is well", parts)


def _axes(across: str, up: str) -> str:
    right, bottom = WIDTH, HEIGHT - BOTTOM
    middle = (TOP + bottom) / 2
    return (
        f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="{INK}"/>'
        + _text((LEFT + right) / 2, HEIGHT - 6, across)
        + f'<text x="10" y="{middle:.0f}" transform="rotate(-90 10 {middle:.0f})" text-anchor="middle">{up}</text>'
    )


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _picture(title: str, parts: Iterable[str]) -> str:
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    drawn = f'<svg {size} role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return f"<figure>{drawn}<figcaption>{escape(title)}</figcaption></figure>"
