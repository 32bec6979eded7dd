"""Measuring replies, rankings and labels: what is counted, and how."""
