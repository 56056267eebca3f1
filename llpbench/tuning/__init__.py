"""Tuning: hyperparameters searched by Optuna, many trials trained as one population."""
