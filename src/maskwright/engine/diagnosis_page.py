"""A diagnosis as an HTML page: bars for fields and for the steps of each output, in SVG. No scripts, nothing loaded."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from maskwright.engine.diagnosis import Diagnosis, FieldLoss, Output, Step, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["page"]

_WORST = math.log(1e-6)  # what a full bar stands for
_WIDTH, _ROW, _LABEL = 360, 22, 260
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}
svg text{font:12px ui-monospace,monospace;fill:#222}
.text{font-family:ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #ddd;padding:.6em}
table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:left;border-bottom:1px solid #ddd;vertical-align:top}
td code{white-space:pre-wrap}
"""


def page(diagnosis: Diagnosis, title: str) -> str:
    """The whole page."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{_shown(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_shown(title)}</h1>",
        *(f"<p>{_shown(line)}</p>" for line in diagnosis._summary()),
        "<h2>Mass kept, field by field</h2>",
        "<p>Bars show what the masks removed, on a scale of logarithms: a full bar is a millionth kept, no bar is all "
        "kept. The longest are where a better prompt helps most.</p>",
        _field_bars(diagnosis.fields),
        "<h2>Where most was removed</h2>",
        _table(diagnosis),
        "<h2>The outputs, token by token</h2>",
        *(_one(at, output) for at, output in enumerate(diagnosis.outputs)),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _shown(text: str) -> str:
    """Text for HTML, with characters that would not show written as escapes."""
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return html.escape(visible, quote=True)


def _share(log_kept: float) -> float:
    return min(1.0, max(0.0, log_kept / _WORST))


def _colour(log_kept: float) -> str:
    """White for all kept, red for a millionth and less."""
    fade = round(255 - 150 * _share(log_kept))
    return f"rgb(255,{fade},{fade})" if log_kept < -1e-3 else "rgb(255,255,255)"


def _svg(width: int, height: int, inside: Iterable[str], label: str) -> str:
    body = "".join(inside)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{_shown(label)}">{body}</svg>'
    )


def _field_bars(fields: tuple[FieldLoss, ...]) -> str:
    rows = []
    for at, each in enumerate(fields):
        y, length = at * _ROW, _share(each.log_kept) * _WIDTH
        name = name_of(each.field)
        cut = name if len(name) <= 34 else "..." + name[-31:]
        rows.append(
            f"<g><title>{_shown(name)}: {each.tokens:.1f} tokens, in {each.outputs} outputs</title>"
            f'<text x="0" y="{y + 15}">{_shown(cut)}</text>'
            f'<rect x="{_LABEL}" y="{y + 3}" width="{length:.1f}" height="{_ROW - 6}" fill="#c0392b"/>'
            f'<text x="{_LABEL + length + 6:.1f}" y="{y + 15}">{math.exp(each.log_kept):.2g}</text></g>'
        )
    return _svg(_LABEL + _WIDTH + 80, max(1, len(fields)) * _ROW, rows, "mass kept by field")


def _table(diagnosis: Diagnosis) -> str:
    if not diagnosis.places:
        return "<p>Nowhere: the model keeps to the format by itself.</p>"
    rows = "".join(
        f"<tr><td>{math.exp(step.kept):.2g}</td><td><code>{_shown(name_of(step.field))}</code></td>"
        f"<td><code>{_shown(step.before)}</code></td><td><code>{_shown(step.text)}</code></td>"
        f"<td>{_wanted(step)}</td><td>{count}</td></tr>"
        for step, count in diagnosis.places
    )
    head = "".join(f"<th>{name}</th>" for name in ("kept", "field", "after", "written", "wanted instead", "outputs"))
    return f"<table><tr>{head}</tr>{rows}</table>"


def _wanted(step: Step) -> str:
    return ", ".join(f"<code>{_shown(text)}</code> {p:.2f}" for text, p in step.wanted) or "-"


def _one(at: int, output: Output) -> str:
    spans = "".join(
        f'<span title="{_shown(_tip(step))}" style="background:{_colour(step.kept)}">{_shown(step.text)}</span>'
        for step in output.steps
    )
    kept = math.exp(output.log_weight)
    return f'<h3>Output {at + 1}, kept {kept:.2g}</h3>{_step_bars(output)}<div class="text">{spans}</div>'


def _tip(step: Step) -> str:
    wanted = ", ".join(f"{text} {p:.2f}" for text, p in step.wanted)
    return f"{name_of(step.field)}: kept {math.exp(step.kept):.3g}" + (f"; wanted {wanted}" if wanted else "")


def _step_bars(output: Output) -> str:
    """A bar for each token, downwards by what was removed."""
    width = max(2, min(14, 700 // max(1, len(output.steps))))
    bars = [
        f'<rect x="{at * width}" y="0" width="{width - 1}" height="{max(1.0, 60 * _share(step.kept)):.1f}" '
        f'fill="#c0392b"><title>{_shown(step.text)} - {_shown(_tip(step))}</title></rect>'
        for at, step in enumerate(output.steps)
    ]
    return _svg(max(1, len(output.steps)) * width, 62, bars, "mass removed by each step")
