import sys
from shop.cli import main

if __name__ == "__main__":
    sys.exit(main())
