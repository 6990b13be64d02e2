# SPDX-License-Identifier: Apache-2.0
"""The networks in PyTorch, written from the papers under the reference implementations' parameter names: the rivals that are
timed (peer_torch.py), and what the tests hold `reperf-train --check` against. They share no code with the engine.

A network has `dropout`, its rate: 0 until it is set, because --check computes without. Batches are dicts of tensors under the
names of --check's file; `loss_of` is what training makes smaller."""
import torch
import torch.nn.functional as F

CLASSES = 19
WIDTHS = [18, 36, 72, 144]


def container(**modules):
    out = torch.nn.Module()
    for name, module in modules.items():
        out.add_module(name, module)
    return out


def as_large_as(x, like):
    return F.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=False)


# ---- ResNet-50 v1.5, torchvision's names ----

class Bottleneck(torch.nn.Module):
    """Its stride sits on the 3x3 convolution: v1.5."""

    def __init__(self, c_in, width, stride, dilation, projected):
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.conv1, self.bn1 = conv(c_in, width, 1, bias=False), norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride, dilation, dilation, bias=False), norm(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1, bias=False), norm(4 * width)
        self.downsample = None
        if projected:
            self.downsample = torch.nn.Sequential(conv(c_in, 4 * width, 1, stride, bias=False), norm(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(F.relu(self.bn2(self.conv2(y)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(torch.nn.Module):
    IGNORED = -100  # no label is

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(64)
        c = 64
        for i, n in enumerate([3, 4, 6, 3]):
            blocks = []
            for j in range(n):
                blocks.append(Bottleneck(c, 64 << i, 2 if i > 0 and j == 0 else 1, 1, j == 0))
                c = 4 * (64 << i)
            setattr(self, "layer%d" % (i + 1), torch.nn.Sequential(*blocks))
        self.fc = torch.nn.Linear(c, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


# ---- HRNet-W18 with a fully convolutional head, PaddleSeg's ----

class ConvNorm(torch.nn.Module):
    def __init__(self, c_in, c_out, kernel, stride=1, relu=True, dilation=1, groups=1, bias=False):
        super().__init__()
        self._conv = torch.nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2 * dilation, dilation, groups, bias)
        self._batch_norm = torch.nn.BatchNorm2d(c_out)
        self.relu = relu

    def forward(self, x):
        y = self._batch_norm(self._conv(x))
        return F.relu(y) if self.relu else y


class Residual(torch.nn.Module):
    """Convolutions in a row and a way around them."""

    def __init__(self, parts, around=None):
        super().__init__()
        for i, part in enumerate(parts):
            self.add_module("conv%d" % (i + 1), part)
        self.n = len(parts)
        self.conv_down = around

    def forward(self, x):
        y = x
        for i in range(self.n):
            y = getattr(self, "conv%d" % (i + 1))(y)
        return F.relu(y + (x if self.conv_down is None else self.conv_down(x)))


class Exchange(torch.nn.Module):
    def __init__(self, name, n):
        super().__init__()
        self.prefix, self.n = "residual_%s_layer_" % name, n
        for to in range(n):
            for source in range(n):
                if source > to:
                    self.add_module("%s%d_%d" % (self.prefix, to + 1, source + 1), ConvNorm(WIDTHS[source], WIDTHS[to], 1, relu=False))
                for i in range(to - source):
                    last = i == to - source - 1
                    width = WIDTHS[to] if last else WIDTHS[source]
                    self.add_module("%s%d_%d_%d" % (self.prefix, to + 1, source + 1, i + 1),
                                    ConvNorm(WIDTHS[source], width, 3, 2, relu=not last))

    def part(self, x, source, to):
        name = "%s%d_%d" % (self.prefix, to + 1, source + 1)
        if source > to:
            return as_large_as(getattr(self, name)(x[source]), x[to])
        y = x[source]
        for i in range(to - source):
            y = getattr(self, "%s_%d" % (name, i + 1))(y)
        return y

    def forward(self, x):
        return [F.relu(sum((self.part(x, s, to) for s in range(self.n) if s != to), x[to])) for to in range(self.n)]


class Module(torch.nn.Module):
    def __init__(self, name, n):
        super().__init__()
        self.name, self.n = name, n
        self.branches_func = container(**{
            "bb_%s_branch_layer_%d_%d" % (name, i + 1, j + 1):
                Residual([ConvNorm(WIDTHS[i], WIDTHS[i], 3), ConvNorm(WIDTHS[i], WIDTHS[i], 3, relu=False)])
            for i in range(n) for j in range(4)})
        self.fuse_func = Exchange(name, n)

    def forward(self, x):
        x = list(x)
        for i in range(self.n):
            for j in range(4):
                x[i] = getattr(self.branches_func, "bb_%s_branch_layer_%d_%d" % (self.name, i + 1, j + 1))(x[i])
        return self.fuse_func(x)


class HRNet(torch.nn.Module):
    IGNORED = 255
    STAGES = {2: 1, 3: 4, 4: 3}  # modules

    def __init__(self):
        super().__init__()
        b = self.backbone = torch.nn.Module()
        b.conv_layer1_1 = ConvNorm(3, 64, 3, 2)
        b.conv_layer1_2 = ConvNorm(64, 64, 3, 2)
        b.la1 = container(**{
            "bb_layer2_%d" % (i + 1):
                Residual([ConvNorm(256 if i else 64, 64, 1), ConvNorm(64, 64, 3), ConvNorm(64, 256, 1, relu=False)],
                         None if i else ConvNorm(64, 256, 1, relu=False))
            for i in range(4)})
        b.tr1 = container(transition_tr1_layer_1=ConvNorm(256, 18, 3), transition_tr1_layer_2=ConvNorm(256, 36, 3, 2))
        b.tr2 = container(transition_tr2_layer_3=ConvNorm(36, 72, 3, 2))
        b.tr3 = container(transition_tr3_layer_4=ConvNorm(72, 144, 3, 2))
        for stage, n in self.STAGES.items():
            b.add_module("st%d" % stage, container(**{
                "stage_st%d_%d" % (stage, i + 1): Module("st%d_%d" % (stage, i + 1), stage) for i in range(n)}))
        self.head = container(conv_1=ConvNorm(270, 270, 1), cls=torch.nn.Conv2d(270, CLASSES, 1, bias=False))

    def features(self, image):
        b = self.backbone
        x = b.conv_layer1_2(b.conv_layer1_1(image))
        for block in b.la1.children():
            x = block(x)
        x = [b.tr1.transition_tr1_layer_1(x), b.tr1.transition_tr1_layer_2(x)]
        for stage in self.STAGES:
            if stage > 2:
                x = x + [next(getattr(b, "tr%d" % (stage - 1)).children())(x[-1])]
            for module in getattr(b, "st%d" % stage).children():
                x = module(x)
        return torch.cat([x[0]] + [as_large_as(y, x[0]) for y in x[1:]], dim=1)

    def forward(self, image):
        return as_large_as(self.head.cls(self.head.conv_1(self.features(image))), image)


# ---- DeepLabV3+ on ResNet-50-vd, PaddleSeg's ----

class VdBlock(torch.nn.Module):
    def __init__(self, c_in, width, stride, dilation, projected):
        super().__init__()
        self.conv0 = ConvNorm(c_in, width, 1)
        self.conv1 = ConvNorm(width, width, 3, stride, dilation=dilation)
        self.conv2 = ConvNorm(width, 4 * width, 1, relu=False)
        self.short = ConvNorm(c_in, 4 * width, 1, relu=False) if projected else None
        self.stride = stride

    def forward(self, x):
        y = self.conv2(self.conv1(self.conv0(x)))
        if self.short is not None:
            x = self.short(F.avg_pool2d(x, 2, 2, ceil_mode=True) if self.stride == 2 else x)
        return F.relu(x + y)


class Separable(torch.nn.Module):
    def __init__(self, c_in, c_out, dilation):
        super().__init__()
        self.depthwise_conv = ConvNorm(c_in, c_in, 3, relu=False, dilation=dilation, groups=c_in, bias=True)
        self.piontwise_conv = ConvNorm(c_in, c_out, 1, bias=True)

    def forward(self, x):
        return self.piontwise_conv(self.depthwise_conv(x))


class DeepLab(torch.nn.Module):
    IGNORED = 255
    DILATIONS = {(2, i): 2 for i in range(6)} | {(3, i): 4 << i for i in range(3)}

    def __init__(self):
        super().__init__()
        b = self.backbone = container(conv1_1=ConvNorm(3, 32, 3, 2), conv1_2=ConvNorm(32, 32, 3), conv1_3=ConvNorm(32, 64, 3))
        c = 64
        for stage, n in enumerate([3, 4, 6, 3]):
            for i in range(n):
                width = 64 << stage
                stride = 2 if (stage, i) == (1, 0) else 1
                b.add_module("bb_%d_%d" % (stage, i), VdBlock(c, width, stride, self.DILATIONS.get((stage, i), 1), i == 0))
                c = 4 * width
        aspp = container(
            aspp_blocks=torch.nn.ModuleList([ConvNorm(c, 256, 1, bias=True)] + [Separable(c, 256, d) for d in (12, 24, 36)]),
            global_avg_pool=torch.nn.ModuleList([torch.nn.AdaptiveAvgPool2d(1), ConvNorm(c, 256, 1)]),
            conv_bn_relu=ConvNorm(5 * 256, 256, 1, bias=True))
        decoder = container(conv_bn_relu1=ConvNorm(256, 48, 1, bias=True), conv_bn_relu2=Separable(304, 256, 1),
                            conv_bn_relu3=Separable(256, 256, 1), conv=torch.nn.Conv2d(256, CLASSES, 1))
        self.head = container(aspp=aspp, decoder=decoder)
        self.dropout = 0.0

    def features(self, image):
        b = self.backbone
        x = F.max_pool2d(b.conv1_3(b.conv1_2(b.conv1_1(image))), 3, 2, 1)
        stages = []
        for stage, n in enumerate([3, 4, 6, 3]):
            for i in range(n):
                x = getattr(b, "bb_%d_%d" % (stage, i))(x)
            stages.append(x)
        return stages[0], stages[3]

    def forward(self, image):
        low, x = self.features(image)
        aspp, decoder = self.head.aspp, self.head.decoder
        parts = [block(x) for block in aspp.aspp_blocks]
        pooled = x
        for part in aspp.global_avg_pool:
            pooled = part(pooled)
        x = aspp.conv_bn_relu(torch.cat(parts + [as_large_as(pooled, x)], dim=1))
        x = F.dropout(x, self.dropout)
        low = decoder.conv_bn_relu1(low)
        x = torch.cat([as_large_as(x, low), low], dim=1)
        return as_large_as(decoder.conv(decoder.conv_bn_relu3(decoder.conv_bn_relu2(x))), image)


# ---- DeepLabV3+ on ResNet-50-v1c, mmsegmentation's ----

class Unit(torch.nn.Module):
    def __init__(self, c_in, c_out, kernel, dilation=1, groups=1):
        super().__init__()
        self.conv = torch.nn.Conv2d(c_in, c_out, kernel, 1, kernel // 2 * dilation, dilation, groups, bias=False)
        self.bn = torch.nn.BatchNorm2d(c_out)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def separable_unit(c_in, c_out, dilation):
    return container(depthwise_conv=Unit(c_in, c_in, 3, dilation, c_in), pointwise_conv=Unit(c_in, c_out, 1))


def in_turn(modules, x):
    for module in modules.children():
        x = module(x)
    return x


class DeepLabMmseg(torch.nn.Module):
    """In training it returns the logits of both heads; the second's loss counts 0.4."""
    IGNORED = 255
    AUXILIARY_WEIGHT = 0.4
    FIRST_DILATION, DILATION = [1, 1, 1, 2], [1, 1, 2, 4]

    def __init__(self):
        super().__init__()
        stem, c = [], 3
        for width, stride in ((32, 2), (32, 1), (64, 1)):
            stem += [torch.nn.Conv2d(c, width, 3, stride, 1, bias=False), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
            c = width
        self.backbone = container(stem=torch.nn.Sequential(*stem))
        for i, n in enumerate([3, 4, 6, 3]):
            blocks = []
            for j in range(n):
                dilation = self.DILATION[i] if j else self.FIRST_DILATION[i]
                blocks.append(Bottleneck(c, 64 << i, 2 if (i, j) == (1, 0) else 1, dilation, j == 0))
                c = 4 * (64 << i)
            self.backbone.add_module("layer%d" % (i + 1), torch.nn.Sequential(*blocks))
        self.decode_head = container(
            image_pool=torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), Unit(c, 512, 1)),
            aspp_modules=torch.nn.ModuleList([Unit(c, 512, 1)] + [separable_unit(c, 512, d) for d in (12, 24, 36)]),
            bottleneck=Unit(5 * 512, 512, 3), c1_bottleneck=Unit(256, 48, 1),
            sep_bottleneck=torch.nn.ModuleList([separable_unit(560, 512, 1), separable_unit(512, 512, 1)]),
            conv_seg=torch.nn.Conv2d(512, CLASSES, 1))
        self.auxiliary_head = container(convs=torch.nn.Sequential(Unit(1024, 256, 3)), conv_seg=torch.nn.Conv2d(256, CLASSES, 1))
        self.dropout = 0.0

    def forward(self, image):
        x = F.max_pool2d(self.backbone.stem(image), 3, 2, 1)
        stages = []
        for i in range(4):
            x = getattr(self.backbone, "layer%d" % (i + 1))(x)
            stages.append(x)
        head, second = self.decode_head, self.auxiliary_head
        auxiliary = as_large_as(second.conv_seg(F.dropout2d(second.convs(stages[2]), self.dropout)), image)
        parts = [as_large_as(head.image_pool(x), x), head.aspp_modules[0](x)] + [in_turn(m, x) for m in list(head.aspp_modules)[1:]]
        x = head.bottleneck(torch.cat(parts, dim=1))
        low = head.c1_bottleneck(stages[0])
        x = torch.cat([as_large_as(x, low), low], dim=1)
        for part in head.sep_bottleneck:
            x = in_turn(part, x)
        return as_large_as(head.conv_seg(F.dropout2d(x, self.dropout)), image), auxiliary


# ---- BERT-base, pre-training, Hugging Face's names ----

class BertLayer(torch.nn.Module):
    def __init__(self, width, heads, inner, eps):
        super().__init__()
        linear, norm = torch.nn.Linear, torch.nn.LayerNorm
        self.heads = heads
        own = container(query=linear(width, width), key=linear(width, width), value=linear(width, width))
        self.attention = container(**{"self": own, "output": container(dense=linear(width, width), LayerNorm=norm(width, eps))})
        self.intermediate = container(dense=linear(width, inner))
        self.output = container(dense=linear(inner, width), LayerNorm=norm(width, eps))

    def attend(self, x, blocked, dropout):
        n, length, width = x.shape
        own = getattr(self.attention, "self")
        q, k, v = (part(x).view(n, length, self.heads, width // self.heads).transpose(1, 2) for part in (own.query, own.key, own.value))
        if hasattr(F, "scaled_dot_product_attention"):  # since 2.0
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=blocked.to(q.dtype), dropout_p=dropout)
        else:
            scores = q @ k.transpose(2, 3) / (width // self.heads) ** 0.5 + blocked
            y = F.dropout(torch.softmax(scores, -1), dropout) @ v
        return y.transpose(1, 2).reshape(n, length, width)

    def forward(self, x, blocked, dropout):
        part = self.attention.output
        x = part.LayerNorm(x + F.dropout(part.dense(self.attend(x, blocked, dropout)), dropout))
        y = self.output.dense(F.gelu(self.intermediate.dense(x)))
        return self.output.LayerNorm(x + F.dropout(y, dropout))


class Bert(torch.nn.Module):
    """Masked language model (its decoder is the word embedding) and next sentence. Unused predictions have position and id 0."""
    IGNORED = 0
    BLOCKED = -10000.0  # added to the scores of what input_mask leaves out
    WORDS, WIDTH, LAYERS, HEADS, INNER, POSITIONS, EPS = 30522, 768, 12, 12, 3072, 512, 1e-12

    def __init__(self):
        super().__init__()
        linear, width = torch.nn.Linear, self.WIDTH
        embeddings = container(
            word_embeddings=torch.nn.Embedding(self.WORDS, width), position_embeddings=torch.nn.Embedding(self.POSITIONS, width),
            token_type_embeddings=torch.nn.Embedding(2, width), LayerNorm=torch.nn.LayerNorm(width, self.EPS))
        layers = torch.nn.ModuleList([BertLayer(width, self.HEADS, self.INNER, self.EPS) for _ in range(self.LAYERS)])
        self.bert = container(embeddings=embeddings, encoder=container(layer=layers), pooler=container(dense=linear(width, width)))
        predictions = container(transform=container(dense=linear(width, width), LayerNorm=torch.nn.LayerNorm(width, self.EPS)))
        predictions.bias = torch.nn.Parameter(torch.zeros(self.WORDS))
        self.cls = container(predictions=predictions, seq_relationship=linear(width, 2))
        self.dropout = 0.0

    def encode(self, batch):
        part = self.bert.embeddings
        ids = batch["input_ids"]
        x = part.word_embeddings(ids) + part.position_embeddings.weight[:ids.shape[1]] + part.token_type_embeddings(batch["segment_ids"])
        x = F.dropout(part.LayerNorm(x), self.dropout)
        blocked = ((1 - batch["input_mask"]) * self.BLOCKED)[:, None, None, :].to(x.dtype)
        for layer in self.bert.encoder.layer:
            x = layer(x, blocked, self.dropout)
        return x

    def forward(self, batch):
        """The logits of the masked words, (N, P, words), and of the next sentence, (N, 2)."""
        x = self.encode(batch)
        at = batch["masked_lm_positions"]
        masked = torch.gather(x, 1, at[:, :, None].expand(-1, -1, x.shape[2]))
        part = self.cls.predictions
        masked = part.transform.LayerNorm(F.gelu(part.transform.dense(masked)))
        words = F.linear(masked, self.bert.embeddings.word_embeddings.weight, part.bias)
        return words, self.cls.seq_relationship(torch.tanh(self.bert.pooler.dense(x[:, 0])))

    def loss(self, batch):
        words, following = self(batch)
        loss = F.cross_entropy(words.flatten(0, 1), batch["masked_lm_ids"].flatten(), ignore_index=self.IGNORED)
        return words, loss + F.cross_entropy(following, batch["next_sentence_labels"].flatten())


class BertTiny(Bert):
    """The same in small: for tests."""
    WIDTH, LAYERS, HEADS, INNER = 128, 2, 2, 512


# ---- all ----

NETS = {"resnet50": ResNet50, "hrnet_w18": HRNet, "deeplabv3p": DeepLab, "deeplabv3p_mmseg": DeepLabMmseg, "bert_base": Bert,
        "bert_tiny": BertTiny}
PADDLE_NAMES = {"_batch_norm.running_mean": "_batch_norm._mean", "_batch_norm.running_var": "_batch_norm._variance"}


def name_of(name):
    """The name in --check's files of what PyTorch calls `name`."""
    for ours, paddle in PADDLE_NAMES.items():
        name = name.replace(ours, paddle)
    return name


def loss_of(net, batch):
    """The logits and the loss of a batch."""
    if isinstance(net, Bert):
        return net.loss(batch)
    logits, labels = net(batch["input"]), batch["labels"]
    if not isinstance(logits, tuple):
        return logits, F.cross_entropy(logits, labels, ignore_index=net.IGNORED)
    losses = [F.cross_entropy(part, labels, ignore_index=net.IGNORED) for part in logits]
    return logits[0], losses[0] + net.AUXILIARY_WEIGHT * losses[1]
