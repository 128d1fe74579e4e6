"""``python -m gistmill``: the program itself, with the arguments that are given."""

import os
import sys

from ._judge import JudgeError, _program


def main() -> None:
    try:
        program = _program()
    except JudgeError as error:
        sys.exit(f"gistmill: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
