"""From files to tables, splits and bags."""
