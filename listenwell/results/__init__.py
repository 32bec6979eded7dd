"""Result files: what a run measured, under which settings, and how it is read back."""
