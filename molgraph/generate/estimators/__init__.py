"""Losses whose gradient makes a language model write texts of higher reward."""
