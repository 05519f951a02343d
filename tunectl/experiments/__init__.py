"""Experiments: a table of cases, each measured in its turn: spinning against sleeping, market data, second copies."""
