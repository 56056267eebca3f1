"""Parts of methods and encoders: losses, pairs, views, attention, feature tokens, design matrices."""
