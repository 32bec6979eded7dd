"""A trained generator as an ordinary model that other engines run, without our code."""
