# SPDX-License-Identifier: Apache-2.0
"""The networks in JAX (jax.numpy and lax alone), NHWC, under the names of --check's files; written from the papers, see
nets_torch.py. Parameters are a dict in the form they are used in: filters H, W, C, K, matrices in x out (`to_jax` and `to_file`
turn them). A network computes in the type of its input, norms and losses in float."""
import jax
import jax.numpy as jnp
from jax import lax

CLASSES, IGNORED = 19, 255
WIDTHS = [18, 36, 72, 144]
BN_EPS, BN_MOMENTUM = 1e-5, 0.1
AUXILIARY_WEIGHT = 0.4
EMBEDDINGS = ("word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight")


def to_jax(name, array):
    if array.ndim == 4:
        return array.transpose(2, 3, 1, 0)
    return array.T if array.ndim == 2 and not name.endswith(EMBEDDINGS) else array


def to_file(name, array):
    if array.ndim == 4:
        return array.transpose(3, 2, 0, 1)
    return array.T if array.ndim == 2 and not name.endswith(EMBEDDINGS) else array


class Counted(dict):
    """Knows which of its items were never asked for."""

    def __init__(self, items):
        super().__init__(items)
        self.unused = set(items)

    def __getitem__(self, name):
        self.unused.discard(name)
        return super().__getitem__(name)


class Pass:
    """One forward pass: hands out parameters, collects the new running statistics, counts the dropouts."""

    def __init__(self, params, stats, key, rate, dtype):
        params = Counted(params)
        self.unused = params.unused
        self.params, self.stats, self.new_stats = params, stats, dict(stats)
        self.key, self.rate, self.dtype, self.n_dropouts = key, rate, dtype, 0

    def weight(self, name):
        return self.params[name].astype(self.dtype)

    def conv(self, x, name, stride=1, dilation=1, groups=1):
        w = self.weight(name + ".weight")
        pads = [(k // 2 * dilation, k // 2 * dilation) for k in w.shape[:2]]
        y = lax.conv_general_dilated(x, w, (stride, stride), pads, rhs_dilation=(dilation, dilation),
                                     dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
        return y + self.weight(name + ".bias") if name + ".bias" in self.params else y

    def norm(self, x, name, relu, names):
        """Over the batch; the running variance takes the unbiased one, as PyTorch's."""
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean = wide.mean((0, 1, 2))
        var = jnp.square(wide - mean).mean((0, 1, 2))
        count = x.shape[0] * x.shape[1] * x.shape[2]
        for stat, value in zip(names, (mean, var * (count / max(count - 1, 1)))):
            old = self.stats[name + stat]
            self.new_stats[name + stat] = lax.stop_gradient(old + BN_MOMENTUM * (value - old))
        scale = self.params[name + ".weight"] * lax.rsqrt(var + BN_EPS)
        y = ((wide - mean) * scale + self.params[name + ".bias"]).astype(x.dtype)
        return jax.nn.relu(y) if relu else y

    def dropout(self, x, whole_channels=False):
        if self.rate == 0:
            return x
        self.n_dropouts += 1
        shape = (x.shape[0], 1, 1, x.shape[3]) if whole_channels else x.shape
        keep = jax.random.bernoulli(jax.random.fold_in(self.key, self.n_dropouts), 1 - self.rate, shape)
        return jnp.where(keep, x / (1 - self.rate), 0).astype(x.dtype)

    def linear(self, x, name):
        return x @ self.weight(name + ".weight") + self.weight(name + ".bias")

    def layer_norm(self, x, name, eps=1e-12):
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        mean = wide.mean(-1, keepdims=True)
        var = jnp.square(wide - mean).mean(-1, keepdims=True)
        return ((wide - mean) * lax.rsqrt(var + eps) * self.params[name + ".weight"] + self.params[name + ".bias"]).astype(x.dtype)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])


def avg_pool_2(x):
    """Windows at the border as large as the image leaves them."""
    pads = [(0, 0), (0, x.shape[1] % 2), (0, x.shape[2] % 2), (0, 0)]
    ones = jnp.ones((1, x.shape[1], x.shape[2], 1), x.dtype)
    total, count = (lax.reduce_window(t, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), pads) for t in (x, ones))
    return total / count


def as_large_as(x, like):
    return jax.image.resize(x, (x.shape[0], like.shape[1], like.shape[2], x.shape[3]), "bilinear", antialias=False)


def cross_entropy(logits, labels, ignored=None):
    """The mean over the labels that count, 0 where none does."""
    logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
    counts = jnp.ones(labels.shape, bool) if ignored is None else labels != ignored
    at = jnp.where(counts, labels, 0)
    losses = jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, at[..., None], -1)[..., 0]
    return jnp.where(counts, losses, 0).sum() / jnp.maximum(counts.sum(), 1)


# ---- ResNet-50 v1.5, and mmsegmentation's DeepLabV3+ ----

TORCH_STATS = (".running_mean", ".running_var")


def bottleneck(p, x, name, stride, dilation, projected):
    y = p.norm(p.conv(x, name + ".conv1"), name + ".bn1", True, TORCH_STATS)
    y = p.norm(p.conv(y, name + ".conv2", stride, dilation), name + ".bn2", True, TORCH_STATS)
    y = p.norm(p.conv(y, name + ".conv3"), name + ".bn3", False, TORCH_STATS)
    if projected:
        x = p.norm(p.conv(x, name + ".downsample.0", stride), name + ".downsample.1", False, TORCH_STATS)
    return jax.nn.relu(x + y)


def resnet50(p, batch):
    x = max_pool(p.norm(p.conv(batch["input"], "conv1", 2), "bn1", True, TORCH_STATS))
    for stage, n in enumerate([3, 4, 6, 3]):
        for i in range(n):
            x = bottleneck(p, x, "layer%d.%d" % (stage + 1, i), 2 if stage > 0 and i == 0 else 1, 1, i == 0)
    return cross_entropy(p.linear(x.mean((1, 2)), "fc"), batch["labels"])


def unit(p, x, name, dilation=1, groups=1):
    return p.norm(p.conv(x, name + ".conv", 1, dilation, groups), name + ".bn", True, TORCH_STATS)


def separable_unit(p, x, name, dilation):
    return unit(p, unit(p, x, name + ".depthwise_conv", dilation, x.shape[3]), name + ".pointwise_conv")


def deeplabv3p_mmseg(p, batch):
    image = x = batch["input"]
    for i, stride in enumerate([2, 1, 1]):
        x = p.norm(p.conv(x, "backbone.stem.%d" % (3 * i), stride), "backbone.stem.%d" % (3 * i + 1), True, TORCH_STATS)
    x, stages = max_pool(x), []
    for i, n in enumerate([3, 4, 6, 3]):
        for j in range(n):
            dilation = ([1, 1, 2, 4] if j else [1, 1, 1, 2])[i]
            x = bottleneck(p, x, "backbone.layer%d.%d" % (i + 1, j), 2 if (i, j) == (1, 0) else 1, dilation, j == 0)
        stages.append(x)
    second = p.dropout(unit(p, stages[2], "auxiliary_head.convs.0"), True)
    second = as_large_as(p.conv(second, "auxiliary_head.conv_seg"), image)
    head = "decode_head."
    parts = [as_large_as(unit(p, x.mean((1, 2), keepdims=True), head + "image_pool.1"), x), unit(p, x, head + "aspp_modules.0")]
    parts += [separable_unit(p, x, head + "aspp_modules.%d" % (i + 1), d) for i, d in enumerate((12, 24, 36))]
    x = unit(p, jnp.concatenate(parts, 3), head + "bottleneck")
    low = unit(p, stages[0], head + "c1_bottleneck")
    x = jnp.concatenate([as_large_as(x, low), low], 3)
    for i in range(2):
        x = separable_unit(p, x, head + "sep_bottleneck.%d" % i, 1)
    x = as_large_as(p.conv(p.dropout(x, True), head + "conv_seg"), image)
    labels = batch["labels"]
    return cross_entropy(x, labels, IGNORED) + AUXILIARY_WEIGHT * cross_entropy(second, labels, IGNORED)


# ---- PaddleSeg's HRNet-W18 and DeepLabV3+ ----

def conv_norm(p, x, name, stride=1, relu=True, dilation=1, groups=1):
    return p.norm(p.conv(x, name + "._conv", stride, dilation, groups), name + "._batch_norm", relu, ("._mean", "._variance"))


def exchange(p, x, name):
    def part(source, to):
        way = "%s%d_%d" % (name, to + 1, source + 1)
        if source > to:
            return as_large_as(conv_norm(p, x[source], way, relu=False), x[to])
        y = x[source]
        for i in range(to - source):
            y = conv_norm(p, y, "%s_%d" % (way, i + 1), 2, relu=i < to - source - 1)
        return y

    return [jax.nn.relu(sum((part(s, to) for s in range(len(x)) if s != to), x[to])) for to in range(len(x))]


def hrnet_module(p, x, stage, name):
    own = "backbone.st%d.stage_%s." % (stage, name)
    x = list(x)
    for i in range(len(x)):
        for j in range(4):
            block = own + "branches_func.bb_%s_branch_layer_%d_%d" % (name, i + 1, j + 1)
            y = conv_norm(p, conv_norm(p, x[i], block + ".conv1"), block + ".conv2", relu=False)
            x[i] = jax.nn.relu(x[i] + y)
    return exchange(p, x, own + "fuse_func.residual_%s_layer_" % name)


def hrnet_w18(p, batch):
    image, b = batch["input"], "backbone."
    x = conv_norm(p, conv_norm(p, image, b + "conv_layer1_1", 2), b + "conv_layer1_2", 2)
    for i in range(4):
        block = b + "la1.bb_layer2_%d" % (i + 1)
        y = conv_norm(p, conv_norm(p, x, block + ".conv1"), block + ".conv2")
        y = conv_norm(p, y, block + ".conv3", relu=False)
        x = jax.nn.relu(y + (x if i else conv_norm(p, x, block + ".conv_down", relu=False)))
    x = [conv_norm(p, x, b + "tr1.transition_tr1_layer_1"), conv_norm(p, x, b + "tr1.transition_tr1_layer_2", 2)]
    for stage, n in {2: 1, 3: 4, 4: 3}.items():
        if stage > 2:
            x = x + [conv_norm(p, x[-1], b + "tr%d.transition_tr%d_layer_%d" % (stage - 1, stage - 1, stage), 2)]
        for i in range(n):
            x = hrnet_module(p, x, stage, "st%d_%d" % (stage, i + 1))
    x = jnp.concatenate([x[0]] + [as_large_as(y, x[0]) for y in x[1:]], 3)
    logits = as_large_as(p.conv(conv_norm(p, x, "head.conv_1"), "head.cls"), image)
    return cross_entropy(logits, batch["labels"], IGNORED)


def vd_block(p, x, name, stride, dilation, projected):
    y = conv_norm(p, conv_norm(p, x, name + ".conv0"), name + ".conv1", stride, dilation=dilation)
    y = conv_norm(p, y, name + ".conv2", relu=False)
    if projected:
        x = conv_norm(p, avg_pool_2(x) if stride == 2 else x, name + ".short", relu=False)
    return jax.nn.relu(x + y)


def separable(p, x, name, dilation):
    y = conv_norm(p, x, name + ".depthwise_conv", relu=False, dilation=dilation, groups=x.shape[3])
    return conv_norm(p, y, name + ".piontwise_conv")


def deeplabv3p(p, batch):
    image = x = batch["input"]
    for i, stride in enumerate([2, 1, 1]):
        x = conv_norm(p, x, "backbone.conv1_%d" % (i + 1), stride)
    x, stages = max_pool(x), []
    for stage, n in enumerate([3, 4, 6, 3]):
        for i in range(n):
            dilation = 2 if stage == 2 else 4 << i if stage == 3 else 1
            x = vd_block(p, x, "backbone.bb_%d_%d" % (stage, i), 2 if (stage, i) == (1, 0) else 1, dilation, i == 0)
        stages.append(x)
    aspp, decoder = "head.aspp.", "head.decoder."
    parts = [conv_norm(p, x, aspp + "aspp_blocks.0")]
    parts += [separable(p, x, aspp + "aspp_blocks.%d" % (i + 1), d) for i, d in enumerate((12, 24, 36))]
    pooled = conv_norm(p, x.mean((1, 2), keepdims=True), aspp + "global_avg_pool.1")
    x = p.dropout(conv_norm(p, jnp.concatenate(parts + [as_large_as(pooled, x)], 3), aspp + "conv_bn_relu"))
    low = conv_norm(p, stages[0], decoder + "conv_bn_relu1")
    x = jnp.concatenate([as_large_as(x, low), low], 3)
    x = separable(p, separable(p, x, decoder + "conv_bn_relu2", 1), decoder + "conv_bn_relu3", 1)
    return cross_entropy(as_large_as(p.conv(x, decoder + "conv"), image), batch["labels"], IGNORED)


# ---- BERT-base, pre-training ----

HEAD_WIDTH, BLOCKED = 64, -10000.0


def attend(p, x, blocked, name):
    n, length, width = x.shape
    q, k, v = (p.linear(x, name + part).reshape(n, length, -1, HEAD_WIDTH) for part in ("query", "key", "value"))
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) / HEAD_WIDTH ** 0.5 + blocked
    wide = scores.astype(jnp.promote_types(scores.dtype, jnp.float32))
    odds = p.dropout(jax.nn.softmax(wide, -1).astype(x.dtype))
    return jnp.einsum("nhqk,nkhd->nqhd", odds, v).reshape(n, length, width)


def bert(p, batch, n_layers):
    ids, own = batch["input_ids"], "bert.embeddings."
    x = p.weight(own + "word_embeddings.weight")[ids] + p.weight(own + "position_embeddings.weight")[:ids.shape[1]]
    x = p.dropout(p.layer_norm(x + p.weight(own + "token_type_embeddings.weight")[batch["segment_ids"]], own + "LayerNorm"))
    blocked = ((1 - batch["input_mask"]) * BLOCKED)[:, None, None, :].astype(x.dtype)
    for i in range(n_layers):
        name = "bert.encoder.layer.%d." % i
        y = p.linear(attend(p, x, blocked, name + "attention.self."), name + "attention.output.dense")
        x = p.layer_norm(x + p.dropout(y), name + "attention.output.LayerNorm")
        y = jax.nn.gelu(p.linear(x, name + "intermediate.dense"), approximate=False)
        x = p.layer_norm(x + p.dropout(p.linear(y, name + "output.dense")), name + "output.LayerNorm")
    masked = jnp.take_along_axis(x, batch["masked_lm_positions"][:, :, None], 1)
    name = "cls.predictions."
    masked = jax.nn.gelu(p.linear(masked, name + "transform.dense"), approximate=False)
    masked = p.layer_norm(masked, name + "transform.LayerNorm")
    words = masked @ p.weight(own + "word_embeddings.weight").T + p.weight(name + "bias")
    following = p.linear(jnp.tanh(p.linear(x[:, 0], "bert.pooler.dense")), "cls.seq_relationship")
    return cross_entropy(words, batch["masked_lm_ids"], 0) + cross_entropy(following, batch["next_sentence_labels"].reshape(-1))


def bert_base(p, batch):
    return bert(p, batch, 12)


def bert_tiny(p, batch):
    return bert(p, batch, 2)


NETS = {"resnet50": resnet50, "hrnet_w18": hrnet_w18, "deeplabv3p": deeplabv3p, "deeplabv3p_mmseg": deeplabv3p_mmseg, "bert_base": bert_base,
        "bert_tiny": bert_tiny, "bert_nano": bert_tiny}
