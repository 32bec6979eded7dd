"""Understanding: one encoder, many heads that read emotions, acts, intents and mechanisms from text."""
