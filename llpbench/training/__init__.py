"""A cell becomes records: populations of members, early stopping, judging, pretrained weights."""
