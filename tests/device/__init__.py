"""Tests that need a device; run with -m device."""
