"""Replies that tell of a life the listener does not have."""
