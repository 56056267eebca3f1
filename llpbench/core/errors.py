"""What a user can mend: one clear line (what happened, the value, what to do next)."""


class LLPBenchError(Exception):
    """Bad input or a bad environment. The CLI prints the message and exits with 2, without a traceback."""


class DataError(LLPBenchError):
    """A dataset that cannot be had, or is not what its specification says."""
