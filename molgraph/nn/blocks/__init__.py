"""Block options: positional features of atoms, frames of geometries, and others that any encoder may take."""
