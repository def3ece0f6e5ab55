"""RDKit's door, without torch: SMILES text in; molecules, reasons, standard forms, scaffolds and descriptors out."""
