"""The chat service: an API that OpenAI's clients know, listenwell's own, and the page."""
