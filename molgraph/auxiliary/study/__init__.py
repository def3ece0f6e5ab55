"""Studies (analyses of data or models) from less cited papers, one file each."""
