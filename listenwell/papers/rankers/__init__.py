"""Response selectors of the papers: HLSTM, MemNet, DAM, DIM, ensembles and likelihoods."""
