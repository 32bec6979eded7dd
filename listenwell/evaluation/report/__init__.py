"""Tables, pages and figures over the result files."""
