"""Pictures of a report as SVG text: how near the pairs came to every claim, and what samples show of what is claimed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.media.text import Markup, joined, markup

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 460, 240, 46, 40, 14
BINS = 10
INK, FILL, BAD = "#555", "#3b6ea5", "#a11212"


def tightness_picture(shares: Sequence[float]) -> Markup:
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
            markup(
                '<rect x="{}" y="{}" width="{}" height="{}" fill="{}"><title>{}: {}</title></rect>',
                f"{x + 2:.1f}", f"{y:.1f}", f"{step - 4:.1f}", f"{size:.1f}", colour, words, count,
            )
        )  # fmt: skip
        if count:
            parts.append(_text(x + step / 2, y - 3, str(count)))
    edge, below = LEFT + step * BINS, HEIGHT - BOTTOM + 14
    labels = [_text(LEFT, below, "0"), _text(LEFT + step * BINS / 2, below, "0.5"), _text(edge - 2, below, "1", "end")]
    above = _text(edge + 4, below, "above", "start")
    axes = _axes("share of the claimed distance that was reached", "questions")
    return _picture("How near the pairs of databases came to every claim", [*parts, *labels, above, axes])


def bounds_picture(points: Iterable[tuple[float, float, str]]) -> Markup:
    """Draw for each question (claimed epsilon, lower bound by samples, words) a dot at bound / claim, largest first; above
    the line it would be a finding."""
    dots = sorted(((bound / claimed, words) for claimed, bound, words in points if claimed > 0), reverse=True)
    most = max(1.2, *(share for share, _ in dots)) if dots else 1.2

    def height(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share / most

    line = markup(
        '<line x1="{}" x2="{}" y1="{y}" y2="{y}" stroke="{}" stroke-dasharray="4 3"/>',
        LEFT, WIDTH, INK, y=f"{height(1):.1f}",
    )  # fmt: skip
    parts = [line, _text(WIDTH, height(1) - 5, "claimed", "end")]
    for number, (share, words) in enumerate(dots):
        x = LEFT + (WIDTH - LEFT) * (number + 0.5) / len(dots)
        parts.append(
            markup(
                '<circle cx="{}" cy="{}" r="3" fill="{}"><title>{}: {} of what is claimed</title></circle>',
                f"{x:.1f}", f"{height(share):.1f}", BAD if share > 1 else FILL, words, f"{share:.2f}",
            )
        )  # fmt: skip
    parts += [_text(LEFT - 6, height(share) + 4, f"{share:g}", "end") for share in (0, 0.5, 1)]
    parts.append(_axes("questions, each a dot", "epsilon by samples / claimed"))
    return _picture("The least epsilon that samples allow, as a share of the claim: below the line all is well", parts)


def _axes(across: str, up: str) -> Markup:
    right, bottom = WIDTH, HEIGHT - BOTTOM
    middle = (TOP + bottom) / 2
    return markup(
        '<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="{ink}"/>{across}'
        '<text x="10" y="{middle}" transform="rotate(-90 10 {middle})" text-anchor="middle">{up}</text>',
        left=LEFT, top=TOP, bottom=bottom, right=right, ink=INK, up=up, middle=f"{middle:.0f}",
        across=_text((LEFT + right) / 2, HEIGHT - 6, across),
    )  # fmt: skip


def _text(x: float, y: float, words: str, anchor: str = "middle") -> Markup:
    return markup('<text x="{}" y="{}" text-anchor="{}">{}</text>', f"{x:.1f}", f"{y:.1f}", anchor, words)


def _picture(title: str, parts: Iterable[Markup]) -> Markup:
    return markup(
        '<figure><svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{title}">'
        "{parts}</svg><figcaption>{title}</figcaption></figure>",
        width=WIDTH, height=HEIGHT, title=title, parts=joined(parts),
    )  # fmt: skip
