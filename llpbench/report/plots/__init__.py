"""Figures of leaderboards and of own data."""
