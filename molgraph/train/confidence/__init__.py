"""Say beside each prediction how wide its interval is, and how far its molecule is from the training molecules."""
