"""Prove that the restored stack computes."""
