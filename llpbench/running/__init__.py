"""A run: settings, plan, schedule, executors, progress. It ends at the journal."""
