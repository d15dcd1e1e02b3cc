"""Error bars of released answers, from released numbers and public noise laws only.

`answer` runs a public remainder; `bars` computes the intervals of its noisy columns when somebody asks for them.
Nothing here costs privacy loss: it is post-processing of what is public already.
"""

from __future__ import annotations

from dpsql.release.error_bars.answers import Answer, Bars, answer, bars

__all__ = ["Answer", "Bars", "answer", "bars"]
