"""Methods that are not graph networks: the classical baselines, one method a file, and the long tail by kind."""
