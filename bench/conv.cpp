// SPDX-License-Identifier: BSL-1.0
//
// Convolutions against oneDNN, one thread each, on one core, in fp32: ten of ResNet-50, forward and
// both gradients. Images have the channels last on both sides. oneDNN's weights are in the layout
// that it chooses, copied beforehand; results are compared before anything is timed.
//
// Argument: rounds (default 7).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include <pipe/backend/host/kernels.hpp>

#include "matrix.hpp"
#include "peer/machine.hpp"
#include "peer/pytorch.hpp"
#include "peer/turns.hpp"

namespace {

using pp::op_kind;
using pp::host::extent;

constexpr int samples = 4;

/// A square convolution of images of size x size pixels; padding is half of the kernel.
struct layer {
  int size, channels, kernel, stride, filters;
  char const* what;

  constexpr pp::detail::convolution_axis axis() const {
    pp::detail::convolution_axis a{size, 1, kernel, stride, kernel / 2, 1};
    a.out = (size + 2 * a.padding - kernel) / stride + 1;
    return a;
  }
  constexpr pp::detail::convolution_attributes geometry() const {
    return {axis(), axis(), channels, filters, 1};
  }
};
constexpr layer layers[] = {{224, 3, 7, 2, 64, "stem"},
                            {56, 64, 1, 1, 64, "narrowing"},
                            {56, 64, 3, 1, 64, "3 x 3"},
                            {56, 64, 1, 1, 256, "widening"},
                            {56, 128, 3, 2, 128, "3 x 3, halving"},
                            {28, 128, 3, 1, 128, "3 x 3"},
                            {14, 256, 3, 1, 256, "3 x 3"},
                            {14, 256, 1, 1, 1024, "widening"},
                            {7, 512, 3, 1, 512, "3 x 3"},
                            {56, 256, 1, 2, 512, "a shortcut, halving"}};

/// The images, weights and gradients of one layer, and the transpose of the weight.
struct operands {
  matrix x, w, turned, dy, y, dx, dw;
  explicit operands(layer const& l, pp::detail::convolution_attributes const& of)
      : x(samples * of.in_rows(), of.channels, 1), w(of.inner(), l.filters, 2),
        turned(l.filters, of.inner()), dy(samples * of.out_rows(), l.filters, 3),
        y(samples * of.out_rows(), l.filters), dx(samples * of.in_rows(), of.channels),
        dw(of.inner(), l.filters) {
    for (int r = 0; r < of.inner(); ++r)
      for (int n = 0; n < l.filters; ++n)
        turned.data()[n * of.inner() + r] = w.data()[r * l.filters + n];
  }
};

/// Our kernel of a kind: a group with that op alone.
template <class Isa>
std::function<void()> ours(op_kind kind, pp::detail::convolution_attributes const& of,
                           matrix const& left, matrix const& right, matrix const& to, Isa isa) {
  pp::detail::group g;
  g.anchor = kind;
  g.attributes = of;
  bool const makes_image = kind == op_kind::convolution_input_gradient;
  g.rows = makes_image ? of.in_rows() : of.out_rows();
  g.columns = makes_image ? of.channels : of.filters;
  g.in[0] = 0;
  g.in[1] = 1;
  g.out[0] = 2;
  extent const rows = extent(of.out_rows()) * samples;
  // Of a 1 x 1 convolution, those of the product.
  auto const of_products = long(
      std::max(pp::host::contraction_workspace<float>(rows, g.columns, of.channels + of.filters),
               pp::host::contraction_workspace<float>(of.channels, of.filters, rows)));
  long const of_patches =
      kind == op_kind::convolution_weight_gradient
          ? pp::host::convolution_weight_gradient_facts::workspace_bytes<float>(g, samples, 1)
          : pp::host::convolution_facts::workspace_bytes<float>(g, samples, 1);
  auto const workspace = std::make_shared<matrix>(1, std::max(of_patches, of_products) / 4, 1u);
  pp::host::arguments<float> a;
  a.operand[0] = left.data();
  a.operand[1] = right.data();
  a.operand[2] = to.data();
  a.workspace = workspace->data();
  return [=] {
    (void)workspace;
    isa(g, a);
  };
}
/// The kernels of an instruction set. A 1 x 1 convolution of stride 1 is a product, as in models.
#define PIPE_BENCH_CONVOLUTION(ISA)                                                               \
  [](pp::detail::group const& g, pp::host::arguments<float> const& a) {                           \
    namespace set = pp::host::ISA;                                                                \
    constexpr auto const& by = set::products_of<float, float>;                                    \
    pp::detail::convolution_attributes const of_layer = g.attributes.convolution();               \
    if (of_layer.taps() == 1 && of_layer.vertical.stride == 1) {                                  \
      pp::detail::group product;                                                                  \
      bool const makes_weight = g.anchor == op_kind::convolution_weight_gradient;                 \
      bool const makes_image = g.anchor == op_kind::convolution_input_gradient;                   \
      product.attributes =                                                                        \
          pp::detail::contraction_attributes{makes_image ? of_layer.filters : of_layer.channels}; \
      product.columns = makes_image ? of_layer.channels : of_layer.filters;                       \
      product.in[0] = 0, product.in[1] = 1, product.out[0] = 2;                                   \
      extent const rows = extent(of_layer.out_rows()) * samples;                                  \
      if (makes_weight)                                                                           \
        return pp::host::multiply_transposed<float, float>(by, a, product, rows, nullptr);        \
      return pp::host::multiply<float>(by, a, product, rows, {});                                 \
    }                                                                                             \
    pp::host::convolution_calls<float> calls;                                                     \
    calls.add_products = &set::add_products<float>;                                               \
    if (g.anchor == op_kind::convolution_weight_gradient)                                         \
      return pp::host::convolve_weights<float, float>(by, a, g, samples, calls, nullptr);         \
    pp::host::convolve<float>(by, a, g, samples, calls);                                          \
  }
std::function<void()> ours(op_kind kind, pp::detail::convolution_attributes const& of,
                           matrix const& left, matrix const& right, matrix const& to) {
#ifdef __x86_64__
  if (pp::host::best_isa() == pp::host::isa::avx512)
    return ours(kind, of, left, right, to, PIPE_BENCH_CONVOLUTION(avx512));
  if (pp::host::best_isa() == pp::host::isa::avx2)
    return ours(kind, of, left, right, to, PIPE_BENCH_CONVOLUTION(avx2));
#endif
  return ours(kind, of, left, right, to, PIPE_BENCH_CONVOLUTION(portable));
}

/// oneDNN's primitives of one layer.
struct onednn {
  dnnl::engine cpu{dnnl::engine::kind::cpu, 0};
  dnnl::stream queue{cpu};
  layer l;
  using format = dnnl::memory::format_tag;
  using description = dnnl::memory::desc;

  description described(long a, long b, long h, long w, format tag) const {
    return {{a, b, h, w}, dnnl::memory::data_type::f32, tag};
  }
  description image() const { return described(samples, l.channels, l.size, l.size, format::nhwc); }
  description result() const {
    return described(samples, l.filters, l.axis().out, l.axis().out, format::nhwc);
  }
  description weight(format tag) const {
    return described(l.filters, l.channels, l.kernel, l.kernel, tag);
  }
  dnnl::memory in_place(description const& d, matrix const& m) const { return {d, cpu, m.data()}; }
  dnnl::memory in_its_layout(description const& d, matrix const& m) {
    dnnl::memory given = in_place(weight(format::hwio), m), own(d, cpu);
    dnnl::reorder(given, own).execute(queue, given, own);
    queue.wait();
    return own;
  }
  template <class Primitive>
  std::function<void()> call(Primitive const& p, std::unordered_map<int, dnnl::memory> with) {
    return [p, with = std::move(with), q = queue]() mutable {
      p.execute(q, with);
      q.wait();
    };
  }

  dnnl::convolution_forward::primitive_desc forward_description() const {
    using namespace dnnl;
    dnnl_dim_t const s = l.stride, p = l.kernel / 2;
    return {cpu,
            prop_kind::forward_training,
            algorithm::convolution_direct,
            image(),
            weight(format::any),
            result(),
            {s, s},
            {p, p},
            {p, p}};
  }
  std::function<void()> forward(operands const& o, matrix const& to) {
    auto const d = forward_description();
    return call(dnnl::convolution_forward(d),
                {{DNNL_ARG_SRC, in_place(image(), o.x)},
                 {DNNL_ARG_WEIGHTS, in_its_layout(d.weights_desc(), o.w)},
                 {DNNL_ARG_DST, in_place(result(), to)}});
  }
  std::function<void()> input_gradient(operands const& o, matrix const& to) {
    using namespace dnnl;
    dnnl_dim_t const s = l.stride, p = l.kernel / 2;
    convolution_backward_data::primitive_desc const d(cpu, algorithm::convolution_direct, image(),
                                                      weight(format::any), result(), {s, s}, {p, p},
                                                      {p, p}, forward_description());
    return call(convolution_backward_data(d),
                {{DNNL_ARG_DIFF_DST, in_place(result(), o.dy)},
                 {DNNL_ARG_WEIGHTS, in_its_layout(d.weights_desc(), o.w)},
                 {DNNL_ARG_DIFF_SRC, in_place(image(), to)}});
  }
  /// The gradient stays in oneDNN's layout; `copy` brings it into ours.
  std::pair<std::function<void()>, std::function<void()>> weight_gradient(operands const& o,
                                                                          matrix const& to) {
    using namespace dnnl;
    dnnl_dim_t const s = l.stride, p = l.kernel / 2;
    convolution_backward_weights::primitive_desc const d(
        cpu, algorithm::convolution_direct, image(), weight(format::any), result(), {s, s}, {p, p},
        {p, p}, forward_description());
    memory own(d.diff_weights_desc(), cpu), copied = in_place(weight(format::hwio), to);
    return {call(convolution_backward_weights(d), {{DNNL_ARG_SRC, in_place(image(), o.x)},
                                                   {DNNL_ARG_DIFF_DST, in_place(result(), o.dy)},
                                                   {DNNL_ARG_DIFF_WEIGHTS, own}}),
            [own, copied, q = queue]() mutable {
              reorder(own, copied).execute(q, own, copied);
              q.wait();
            }};
  }
};

}  // namespace

int main(int count, char** arguments) {
  bench::restart_on_one_core(arguments);
  int const rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 7;
  std::printf("pipe with %s; %s; one thread each, on one core, fp32, %d images\n",
              bench::instruction_set(), bench::load_pytorch().onednn.c_str(), samples);
  std::printf("GF/s, medians of %d rounds in turns\n", rounds);
  std::printf("%5s %4s %3s %2s %4s  %-8s %8s %8s %6s  %s\n", "size", "C", "K", "s", "N", "", "pipe",
              "oneDNN", "ratio", "what");
  std::vector<double> ratios;
  for (layer const& l : layers) {
    pp::detail::convolution_attributes const of = l.geometry();
    operands o(l, of);
    matrix y(samples * of.out_rows(), l.filters), dx(samples * of.in_rows(), l.channels),
        dw(of.inner(), l.filters);
    onednn peer{.l = l};
    auto const [weight_gradient, copy] = peer.weight_gradient(o, dw);
    struct contest {
      char const* what;
      std::function<void()> ours, theirs;
      matrix const &result, &wanted;
    };
    std::vector<contest> const all{
        {"y", ours(op_kind::convolution, of, o.x, o.w, o.y), peer.forward(o, y), o.y, y},
        {"dx", ours(op_kind::convolution_input_gradient, of, o.dy, o.turned, o.dx),
         peer.input_gradient(o, dx), o.dx, dx},
        {"dw", ours(op_kind::convolution_weight_gradient, of, o.x, o.dy, o.dw), weight_gradient,
         o.dw, dw}};
    for (contest const& c : all) {
      if (l.channels == 3 && &c == &all[1]) continue;  // nothing before the stem is trained
      c.ours();
      c.theirs();
      copy();
      if (!(difference(c.wanted, c.result) < largest_difference)) {
        std::fprintf(stderr, "results differ: %s of %d x %d, %d channels\n", c.what, l.size, l.size,
                     l.channels);
        return 1;
      }
      bench::turns const seconds({c.ours, c.theirs}, rounds, bench::thread_seconds);
      double const flops = 2e-9 * samples * of.out_rows() * double(of.inner()) * l.filters;
      ratios.push_back(seconds.ratio(1, 0));
      std::printf("%5d %4d %3d %2d %4d  %-8s %8.1f %8.1f %6.3f  %s\n", l.size, l.channels, l.kernel,
                  l.stride, l.filters, c.what, flops / seconds.median(0), flops / seconds.median(1),
                  ratios.back(), l.what);
      std::fflush(stdout);
    }
  }
  std::printf("figure conv_over_onednn %.3f\n", bench::geometric_mean(ratios));
}
