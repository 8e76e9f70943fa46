// SPDX-License-Identifier: BSL-1.0
//
// A program whose numbers flags of a compiler could change: trains models that have, together,
// every layer, loss and optimizer, and prints the bits of all that they compute. See flags.py.
#include <cstdio>
#include <cstring>
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

#if defined(__x86_64__) && !defined(PORTABLE)
using kernels = HostKernels<host::isa::avx2>;
#else
using kernels = PortableHost;
#endif

namespace {

/// FNV-1a
struct hash {
  unsigned long value = 14695981039346656037ul;
  template <class T>
  void add(T const* x, std::size_t n) {
    unsigned char bytes[sizeof(T)];
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(bytes, x + i, sizeof(T));
      for (unsigned char const byte : bytes) value = (value ^ byte) * 1099511628211ul;
    }
  }
};

template <class Label>
Label label_of(std::size_t i, int classes) {
  if constexpr (std::is_same_v<Label, int>)
    return int(i * 5 % std::size_t(classes));
  else
    return Label(int(i * 11 % 16)) / 16;
}
template <class In>
In input_of(std::size_t i) {
  if constexpr (std::is_same_v<In, int>)
    return int(i * i % 11);
  else
    return In(int(i * 37 % 64) - 32) / 32;
}

template <class Model, class Optimizer, class... Options>
void train(char const* name, Optimizer o = {}) {
  using T = Pipeline<Model, Optimizer, kernels, MicroBatches<2>, MicroBatchSize<3>, Options...>;
  T trainer({.seed = 3, .optimizer = o, .clip_value = 0.5, .clip_norm = 1});
  std::vector<typename T::input_type> x(std::size_t(T::samples * T::inputs_per_sample));
  std::vector<typename T::label_type> y(std::size_t(T::samples * T::labels_per_sample));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = input_of<typename T::input_type>(i);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = label_of<typename T::label_type>(i, 7);
  hash initial, all;
  for (auto const& p : trainer.parameters()) initial.add(p.values.data(), p.values.size());
  std::printf("%s: initial %016lx", name, initial.value);
  hash steps;
  double loss = 0;
  for (int i = 0; i < 100; ++i) {
    auto const r = trainer.step({x, y});
    loss = r.loss;
    steps.add(&r.loss, 1);
    steps.add(&r.gradient_norm, 1);
  }
  for (auto const& p : trainer.parameters()) all.add(p.values.data(), p.values.size());
  std::vector<float> out(std::size_t(T::samples * T::outputs_per_sample));
  trainer.forward(x, out);
  hash last;
  last.add(out.data(), out.size());
  std::printf(
      ", losses and norms of 100 steps %016lx, loss %a, parameters %016lx, outputs %016lx\n",
      steps.value, loss, all.value, last.value);
}

/// A formula of a user's own.
struct Softsign {
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T x) {
    T const s = T(1) + (x < T(0) ? -x : x);
    return T(1) / (s * s);
  }
};
struct LogCosh : ElementLoss<LogCosh> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T x, T target) {
    T const d = x - target, size = d < T(0) ? -d : d;
    return size + math::log1p(math::exp(T(-2) * size)) - T(0.6931471805599453);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T x, T target) {
    return math::tanh(x - target);
  }
};
struct Focal : LabelLoss<Focal> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T l) {
    T const q = T(1) - math::exp(l);
    return -(q * q * l);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T l) {
    T const p = math::exp(l), q = T(1) - p;
    T const rise = T(2) * q * p * l, fall = q * q;  // clang++ contracts within an expression
    return rise - fall;
  }
};

struct Texts
    : Model<Tokens<11, 6>, Embedding<12, Init<Normal<1, 10>>>, SinusoidalPositions,
            Residual<RMSNorm, Attention<2, KeyValueHeads<1>, RoPE<>>>, Linear<46>, SwiGLU, GELUTanh,
            Linear<46>, GEGLU, Dropout<1, 10>, Linear<21>, Positions,
            Residual<LayerNorm, Attention<3, SoftCap<20>, ALiBi>>, Tanh, Linear<38>, GLU, Sigmoid,
            Linear<37>, LayerNorm, GELU, Softmax, Linear<13>, RMSNorm, Map<Softsign>, Linear<7>,
            SoftCap<30>, With<CrossEntropy, LabelSmoothing<1, 10>, ZLoss<1, 100>>> {};
struct Images
    : Model<Input<8, 8, 3>, Conv2d<21, 3, Padding<1>>, BatchNorm, SiLU, LocalResponseNorm<5>,
            Conv2d<21, 3, Groups<21>>, GroupNorm<7>, Mish, MaxPool2d<2>, UpsampleBilinear<2>,
            AvgPool2d<Axes<3, 2>, Stride<2>, Padding<1>, ExcludePadding>, ConvTranspose2d<9, 2>,
            BatchNorm, Softplus, Dropout2d<1, 4>, Flatten, Linear<19>, ELU, Linear<7>,
            With<CrossEntropy, ClassWeights<1, 2, 0, 4, 1, 2, 3>, LabelSmoothing<1, 10>>> {};
template <class Loss>
struct Numbers : Model<Input<19>, Linear<37>, BatchNorm, GELUTanh, Linear<29>, LayerNorm, Tanh,
                       Linear<7>, Loss> {};

}  // namespace

int main() {
#if PART == 1
  train<Texts>("texts, AdamW", AdamW{.learning_rate = 0.01});
#elif PART == 2
  train<Images>(
      "images, SGD",
      SGD{.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
#elif PART == 3
  train<Numbers<MSE>>("MSE, Adam", Adam{.weight_decay = 0.01});
  train<Numbers<BCE>>("BCE, NAdam", NAdam{.weight_decay = 0.01});
  train<Numbers<With<BCE, PosWeight<3, 2>>>>("BCE with a weight, Lion", Lion{.weight_decay = 0.01});
#else
  train<Numbers<Huber<1, 4>>>("Huber, LAMB", LAMB{});
  train<Numbers<LogCosh>>("log cosh, Adafactor", Adafactor{.weight_decay = 0.01});
  train<Numbers<MSE>>("MSE, Adamax", Adamax{.weight_decay = 0.01});
  train<Numbers<MSE>>("MSE, RMSprop", RMSprop{.weight_decay = 0.01, .momentum = 0.9});
  train<Numbers<MSE>>("MSE, CenteredRMSprop", CenteredRMSprop{.momentum = 0.9});
  train<Numbers<MSE>>("MSE, Adagrad", Adagrad{.weight_decay = 0.01});
  train<Numbers<CrossEntropy>>("cross entropy, Muon", Muon{});
  train<Numbers<Focal>>("focal, ErrorFeedback", ErrorFeedback<AdamW>{});
#endif
}
