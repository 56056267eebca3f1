"""Files to data frames: text tables, workbooks and parquet, their columns, and the names of bags in them."""
