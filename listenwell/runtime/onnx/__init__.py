"""The engine without torch: onnxruntime graphs built from the weights and kept in the user's cache."""
