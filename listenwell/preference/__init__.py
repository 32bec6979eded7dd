"""Learning from preferences: ratings, preference pairs, hard negatives and the reward model."""
