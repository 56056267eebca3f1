"""Training a cell into records: populations of members, early stopping, judging and pretrained weights."""
