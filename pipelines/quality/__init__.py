"""The quality table: which methods are how good on real data, from a recipe, frozen splits and stored predictions."""
