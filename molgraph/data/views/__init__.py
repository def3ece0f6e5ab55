"""Views of entities, one a file; the base class stands in ``molgraph.data.view``."""
