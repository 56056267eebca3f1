"""Reports of journals: leaderboards, tables, figures and the page. Needs neither torch nor ray."""
