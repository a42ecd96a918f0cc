"""Matrix factorisation with BPR."""

from torch import Tensor

from ltocf.models.embedding import EmbeddingConfig, EmbeddingModel


class MF(EmbeddingModel):
    """Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009.

    Dot product of two vectors, no biases."""

    Config = EmbeddingConfig
    trains_on_gpu = True
    splits_columns = True

    def embeddings(self) -> Tensor:
        return self.weight
