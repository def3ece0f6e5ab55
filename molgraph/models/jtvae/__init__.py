"""JT-VAE: a variational autoencoder of molecules as junction trees and graphs (Jin et al. 2018)."""
