"""What a user can mend: one clear line (what happened, the value, what to do next)."""


class LLPBenchError(Exception):
    """Bad input or a bad environment. The command line prints the message and exits with 2, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class DataError(LLPBenchError):
    """A dataset that cannot be had, or is not what its specification says."""


class UnknownColumnError(LLPBenchError):
    """A table has no column of some name."""
