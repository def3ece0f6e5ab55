"""Training: tables in, fitted methods and model files out."""
