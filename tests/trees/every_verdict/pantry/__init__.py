"""What the tests call."""

from pantry.shapes import Square, area, factorial, steps
from pantry.words import words
