"""Choosing: small judges of what a reply should not do, and how their votes are put together."""
