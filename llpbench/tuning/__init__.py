"""Tuning: search for hyperparameters by Optuna, with many trials trained as one population."""
