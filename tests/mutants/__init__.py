"""Faults made on purpose: each breaks one rule of the product, and a test has to notice."""
