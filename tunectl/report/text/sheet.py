"""A page in the making: lines of styled parts, turned into text at the end. rich is imported only to colour them."""

from __future__ import annotations

from collections.abc import Sequence

Styled = tuple[str, str]  # a text, and a style of rich's; "" for none


class Sheet:
    """What the pages write on; `width` in terminal cells."""

    def __init__(self, width: int, verbose: int = 0) -> None:
        self.width = width
        self.verbose = verbose
        self.lines: list[Sequence[Styled]] = []

    def line(self) -> None:
        """A blank line."""
        self.lines.append(())

    def add(self, parts: Sequence[Styled]) -> None:
        """A line, as it is: neither wrapped nor cut."""
        self.lines.append(parts)

    def plain(self) -> str:
        """The page without styles."""
        return "".join("".join(text for text, _ in parts).rstrip() + "\n" for parts in self.lines)

    def coloured(self) -> str:
        """The page with a terminal's escape sequences. Nothing in it is taken for markup: `[never]` stays."""
        from io import StringIO

        from rich.console import Console
        from rich.text import Text

        memory = StringIO()
        console = Console(
            file=memory,
            width=self.width,
            color_system="standard",
            force_terminal=True,
            force_jupyter=False,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            _environ={},  # what the text looks like is decided by the caller, not by COLUMNS or FORCE_COLOR
        )
        for parts in self.lines:
            text = Text()
            for words, style in parts:
                text.append(words, style)
            text.rstrip()
            console.print(text, soft_wrap=True)
        return memory.getvalue()
