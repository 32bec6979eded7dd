"""Models and analyses of the papers that are not the product's own way."""
