"""What to do about it: host file, profile, observe, plan, journal, apply, restore."""
