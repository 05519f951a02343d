"""Two probe results side by side, with bounds, so that noise is not taken for tuning. Pure; `cli` reads the files."""
