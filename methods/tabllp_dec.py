"""TabLLP-DEC: deep embedded clustering with one cluster per class, fitted to the proportions of bags.

    qᵢc ∝ 1 / (1 + ‖zᵢ − μc‖²),  pᵢc ∝ qᵢc² / hc;  L = KL( p ‖ q ) + gamma · L_bag on q
    qᵢc: degree to which row i belongs to cluster c;  μc, hc: its centre and size;  p: sharpened target

The clustering baseline of the TabLLP-BDC paper, after Xie et al. 2016. q_ic is the degree to which row i belongs to
centroid c (Student's t). It is pulled towards a sharper target p_ic ~ q_ic^2 / h_c, h_c the size of the cluster. The
proportion loss acts on q, and q is the prediction. At the start, k-means clusters are assigned to classes such that the
clusters' fractions of each bag are closest to its proportions.

As published, the target divides by h_c and so prefers clusters of equal size. This is harmful if classes are unequal.
`prior_corrected` multiplies by the class's proportion. Choices where the paper is silent:

- `warm_up`: clusters of an untrained encoder mean little. Xie et al. train an autoencoder first. `denoise` does this in
  ten epochs of reconstructing mixed views. The default is ten epochs of DLLP. Without it, if proportions are similar in
  all bags and near one half, clusters find other structure than classes. A seed may end below chance.
- h_c is computed over the whole training set every epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn

from llpbench import Member, Method, MethodParams, Now, Stage, losses, register_method
from llpbench.blocks.pretraining import Decoder
from llpbench.blocks.views import mixed_view
from llpbench.core.bags import BaggedRows, Bags, FloatArray, IntArray, Schema
from llpbench.core.model import Encoder, Model, Network
from llpbench.core.ranges import Choice, LogUniform

WARM_UP_EPOCHS = 10
STARTS = 20
"""random starts of k-means"""


@dataclass(frozen=True)
class _DECParams(MethodParams):
    """Hyperparameters of the clustering."""

    gamma: Annotated[float, LogUniform(0.1, 10.0)] = 1.0
    """weight of the proportion loss"""
    warm_up: Annotated[str, Choice("dllp", "denoise", "none")] = "dllp"
    """how the encoder is trained in the ten epochs before clustering; `none`: not at all"""
    frequencies: Annotated[str, Choice("epoch", "step")] = "epoch"
    """rows that determine the sizes of clusters: the training set at the start of an epoch, or the rows of a step"""
    prior_corrected: Annotated[bool, Choice(False, True)] = False
    """whether the target expects clusters as large as the classes, instead of equally large ones"""


class _Clusters(nn.Module):
    """Centroids, and the degrees to which rows belong to them."""

    size: Tensor
    prior: Tensor

    def __init__(self, dim: int, schema: Schema) -> None:
        super().__init__()
        self.centroids = nn.Parameter(torch.randn(schema.classes, dim))
        self.register_buffer("size", torch.full((schema.classes,), 1.0 / schema.classes))
        self.register_buffer("prior", torch.tensor(schema.prior))

    def forward(self, z: Tensor) -> Tensor:
        """Return log q [..., classes]: q_ic ~ 1 / (1 + |z_i - mu_c|^2), Student's t with one degree of freedom."""
        distance = (z.float().unsqueeze(-2) - self.centroids).square().sum(dim=-1)
        return (-distance.log1p()).log_softmax(dim=-1)


@register_method("tabllp-dec", version=1, reference="TabLLP-BDC paper, after Xie et al. 2016", family="pseudo-label")
class TabLLPDEC(Method):
    """Deep embedded clustering with one cluster per class and the proportion loss."""

    Params = _DECParams
    params: _DECParams

    def __init__(self, params: MethodParams | None = None) -> None:
        super().__init__(params)
        warm_up = Stage("warm-up", epochs=WARM_UP_EPOCHS, judged=False)
        refresh = 1 if self.params.frequencies == "epoch" else None
        clustering = Stage("clustering", refresh=refresh)
        self.stages = (clustering,) if self.params.warm_up == "none" else (warm_up, clustering)

    def build(self, encoder: Encoder, schema: Schema) -> Network:
        """Return the default network (its head serves the warm-up), clusters, and a decoder for denoising."""
        network = super().build(encoder, schema).add(clusters=_Clusters(encoder.dim, schema))
        if self.params.warm_up == "denoise":
            network.add(decoder=Decoder(encoder, schema))
        return network

    def log_proba(self, model: Model, bags: Bags) -> Tensor:
        """Return log q."""
        return model.network.clusters(model.encode(bags).z)

    def loss(self, model: Model, bags: Bags, now: Now) -> Tensor:
        """Return KL(T || Q) + gamma * proportion loss of q; in the warm-up, the loss of its task."""
        if now.stage == "warm-up":
            return self._warm_up(model, bags)
        clusters = model.network.clusters
        log_q = clusters(model.encode(bags).z)
        q = log_q.detach().exp()
        inside = bags.mask.unsqueeze(-1)
        size = clusters.size if self.params.frequencies == "epoch" else (q * inside).sum(dim=(0, 1)) / bags.mask.sum()
        target = _target_distribution(q, size, clusters.prior if self.params.prior_corrected else None)
        sharpen = losses.masked_mean((torch.xlogy(target, target) - target * log_q).sum(dim=-1), bags.mask)
        return sharpen + self.params.gamma * losses.proportion_loss(log_q, bags)

    def _warm_up(self, model: Model, bags: Bags) -> Tensor:
        if self.params.warm_up == "dllp":
            return losses.proportion_loss(model.log_proba(bags), bags)
        mixed = mixed_view(model, bags, cutmix=0.1, mixup=0.3)
        return model.network.decoder(mixed, bags.rows, bags.mask, 10.0)

    def prepare(self, member: Member, now: Now) -> None:
        """Set centroids by k-means at the start of the clustering, and update cluster sizes every epoch."""
        if now.stage == "warm-up":
            return
        clusters: _Clusters = member.network.clusters
        with torch.no_grad():
            if now.epoch == 0:
                centroids = _class_centroids(member.encode(), member.train, member.rng)
                clusters.centroids.copy_(torch.from_numpy(centroids))
            clusters.size.copy_(torch.from_numpy(member.proba().mean(axis=0)))


def _target_distribution(q: Tensor, size: Tensor, prior: Tensor | None = None) -> Tensor:
    """Return p_ic ~ q_ic^2 / h_c (Xie et al. 2016, equation 3), times pi_c if given: `size` is h, `prior` is pi."""
    weight = q.square() / size.clamp(min=1e-12)
    if prior is not None:
        weight = weight * prior
    return weight / weight.sum(dim=-1, keepdim=True)


def _class_centroids(z: FloatArray, train: BaggedRows, rng: np.random.Generator) -> FloatArray:
    """Return k-means centroids [classes, dim] of `z` [rows, dim], in the order of their classes."""
    from sklearn.cluster import KMeans

    classes = train.counts.shape[1]
    kmeans = KMeans(classes, n_init=STARTS, random_state=int(rng.integers(2**31))).fit(z)
    order = _clusters_of_classes(kmeans.labels_.astype(np.int64), train)
    return np.asarray(kmeans.cluster_centers_[order], dtype=np.float32)


def _clusters_of_classes(labels: IntArray, train: BaggedRows) -> IntArray:
    """Return the cluster of each class [classes]: least sum over bags of (p_kc - the cluster's fraction of bag k)^2."""
    from scipy.optimize import linear_sum_assignment  # takes long to import, and `llpbench plan` does not need it

    classes, known = train.counts.shape[1], train.known
    shares = np.stack([np.bincount(labels[bag[bag >= 0]], minlength=classes) / (bag >= 0).sum() for bag in train.index])
    cost = ((train.proportions[known, :, None] - shares[known, None, :]) ** 2).sum(axis=0)
    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)
