"""Choose among methods by cross-validation, and weigh those that are kept."""
