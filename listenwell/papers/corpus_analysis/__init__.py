"""Factor statistics of annotated corpora (CoMAE §4, MEED2 §3)."""
