"""envlock beside its peers, measured in one run: ratios, never absolute promises."""
