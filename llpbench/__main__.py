"""`python -m llpbench` is `llpbench`."""

from llpbench.cli.main import main

main()
