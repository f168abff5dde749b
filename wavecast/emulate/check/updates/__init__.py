"""Values that are read, changed and stored: lost updates, counters that nobody resets."""
