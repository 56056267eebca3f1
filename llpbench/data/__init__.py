"""Reading files into tables, splits and bags."""
