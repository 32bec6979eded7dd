"""Safety: crisis is heard before anything is worded, replies are filtered, inputs are cleaned."""
