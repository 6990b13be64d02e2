# SPDX-License-Identifier: Apache-2.0
"""The segmentation networks in PyTorch, written from the papers and the reference implementations' parameter names: what
`reperf-train --check` is held against (check_torch_seg.py). They share no code with the engine."""
import torch
import torch.nn.functional as F

CLASSES = 19
WIDTHS = [18, 36, 72, 144]


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


def container(**modules):
    out = torch.nn.Module()
    for name, module in modules.items():
        out.add_module(name, module)
    return out


def as_large_as(x, like):
    return F.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=False)


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


class Bottleneck(torch.nn.Module):
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


def separable_unit(c_in, c_out, dilation):
    return container(depthwise_conv=Unit(c_in, c_in, 3, dilation, c_in), pointwise_conv=Unit(c_in, c_out, 1))


def in_turn(modules, x):
    for module in modules.children():
        x = module(x)
    return x


class DeepLabMmseg(torch.nn.Module):
    """auxiliary: the second head's logits of the last forward pass; its loss counts 0.4."""
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
        self.auxiliary = None

    def forward(self, image):
        x = F.max_pool2d(self.backbone.stem(image), 3, 2, 1)
        stages = []
        for i in range(4):
            x = getattr(self.backbone, "layer%d" % (i + 1))(x)
            stages.append(x)
        head, second = self.decode_head, self.auxiliary_head
        self.auxiliary = as_large_as(second.conv_seg(second.convs(stages[2])), image)
        parts = [as_large_as(head.image_pool(x), x), head.aspp_modules[0](x)] + [in_turn(m, x) for m in list(head.aspp_modules)[1:]]
        x = head.bottleneck(torch.cat(parts, dim=1))
        low = head.c1_bottleneck(stages[0])
        x = torch.cat([as_large_as(x, low), low], dim=1)
        for part in head.sep_bottleneck:
            x = in_turn(part, x)
        return as_large_as(head.conv_seg(x), image)
