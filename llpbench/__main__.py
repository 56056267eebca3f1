"""`python -m llpbench` is `llpbench`."""

from llpbench.cli import main

main()
