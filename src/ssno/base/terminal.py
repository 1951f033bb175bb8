"""The terminal, on which names from files are shown but never obeyed.

rich reads `[red]` in a string as an order and passes escape sequences on. This console does neither: what is to be
bold or coloured is a `rich.text.Text`, which says so outside the words.
"""

from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment
from rich.text import Text

from ssno.base.formatting import printable


class Console(rich.console.Console):
    """rich's console without markup in strings, which spells out control characters instead of sending them."""

    def __init__(self, **options: Any):
        super().__init__(**options, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Strings are spelt out before their widths are measured."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: Any, options: rich.console.ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything shown passes here; only rich's own movements of the cursor stay what they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)
