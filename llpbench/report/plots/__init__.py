"""Figures of leaderboards and of your data."""
