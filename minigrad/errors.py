"""Every error minigrad raises on purpose: one sentence naming op, shapes and the broken rule.

MinigradError
├── ShapeError      (ValueError)   shapes that do not meet, or an array of the wrong shape
├── DtypeError      (TypeError)    a gradient asked of integers, or no numbers
├── ArgumentError   (TypeError)    an op called with arguments it does not have
├── OutOfRangeError (IndexError)   an index that points at no cell
├── DomainError     (ValueError)   a value an op is not defined for
├── CardError       (TypeError)    an op card that is declared wrongly
├── RuleError       (ValueError)   a backward rule that fails or is missing
├── GraphError      (ValueError)   a graph that cannot be walked or copied
├── TraceError      (ValueError)   a trace file that cannot be read
└── LessonError     (ValueError)   a lesson, or an input typed into one
"""

from __future__ import annotations


class MinigradError(Exception):
    """The root of the tree above; what it says is one line, whatever was quoted in it."""

    def __init__(self, sentence: object = "") -> None:
        super().__init__(" ".join(str(sentence).split()))


class ShapeError(MinigradError, ValueError):
    """Shapes that do not meet, or an array of the wrong shape."""


class DtypeError(MinigradError, TypeError):
    """A dtype that cannot do what was asked of it."""


class ArgumentError(MinigradError, TypeError):
    """An op called with arguments it does not have."""


class OutOfRangeError(MinigradError, IndexError):
    """An index that points at no cell."""


class DomainError(MinigradError, ValueError):
    """A value for which an op is not defined."""


class CardError(MinigradError, TypeError):
    """An op card whose declaration contradicts itself."""


class RuleError(MinigradError, ValueError):
    """A backward rule that fails, is missing, or breaks its contract."""


class GraphError(MinigradError, ValueError):
    """A graph that cannot be walked or copied, or that was edited after the forward pass."""


class TraceError(MinigradError, ValueError):
    """A trace file that cannot be read."""


class LessonError(MinigradError, ValueError):
    """A lesson, or an input typed into one, that cannot be used."""
