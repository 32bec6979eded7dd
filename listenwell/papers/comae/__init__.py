"""CoMAE (Zheng et al. 2021) and the family of its tables.

Communication mechanisms, dialogue act and expressed emotion of a reply are predicted one after the other from
the context, and their embeddings are added to every token of the reply.
"""
