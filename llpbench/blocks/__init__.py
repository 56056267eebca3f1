"""What methods and encoders are built from: losses, pairs, views, attention, feature tokens, design matrices."""
