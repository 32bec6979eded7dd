"""Engines that run a model: tokens in, logits out. Everything above them speaks the `Runtime` protocol."""
