// SPDX-License-Identifier: BSL-1.0
//
// The geometry of convolutions on the host, and the facts of their kernels. A convolution is a
// product whose left factor, the patches of the image, is gathered block by block as the product
// reads it. An input gradient gathers pixels of dy; with a stride it is computed in phases, each a
// dense product with some of the taps, so that no zeros are multiplied.
#pragma once

#include <pipe/backend/host/facts.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/graph/attributes.hpp>

namespace pp::host {

/// The reads along one axis: pixel i of the result reads position i * stride + first + t * delta of
/// the source for each tap t. Tap t is number tap + t * tap_stride in the kernel, and pixel i is
/// number pixel + i * pixel_stride in the whole result.
struct read_axis {
  int pixels = 0, stride = 1, first = 0, delta = 1, taps = 0, source = 0;
  int tap = 0, tap_stride = 1, pixel = 0, pixel_stride = 1;
};

/// The reads of x by a convolution.
constexpr read_axis forward_axis(detail::convolution_axis const& a) {
  return {a.out, a.stride, -a.padding, a.dilation, a.kernel, a.in};
}
/// The reads of dy by the pixels of dx whose number is `phase` modulo the stride.
constexpr read_axis gradient_axis(detail::convolution_axis const& a, int phase) {
  int taps_apart = 1;
  while (taps_apart * a.dilation % a.stride != 0) ++taps_apart;
  read_axis r;
  r.pixels = (a.in - phase + a.stride - 1) / a.stride;
  r.source = a.out;
  r.pixel = phase;
  r.pixel_stride = a.stride;
  r.tap_stride = taps_apart;
  r.delta = -(taps_apart * a.dilation / a.stride);
  while (r.tap < a.kernel && r.tap < taps_apart &&
         (phase + a.padding - r.tap * a.dilation) % a.stride != 0)
    ++r.tap;
  if (r.tap >= a.kernel || r.tap >= taps_apart) return r;  // no tap reaches these pixels
  r.taps = (a.kernel - 1 - r.tap) / taps_apart + 1;
  r.first = (phase + a.padding - r.tap * a.dilation) / a.stride;
  return r;
}

/// Rows of the result that are computed together, and elements of a patch that are gathered at
/// once: the block of patches and the block of partial sums stay in L2.
inline constexpr extent patch_rows = 256, patch_depth = 320;

/// The blocking of a product of gathered patches. makes_right: the right factor is gathered too.
/// Panels of the right factor are copied if its rows lie so far apart that they evict each other
/// from L1. A copy serves patch_rows rows, so it costs a fraction of the product.
template <class T>
constexpr blocking patch_blocking(extent m, extent n, extent k, extent tile_columns,
                                  bool makes_right) {
  constexpr extent far_apart = 512;  // bytes
  extent const depth = even_depth(k, patch_depth);
  bool const is_narrow = tile_columns * extent(sizeof(T)) <= narrow_tile_bytes;
  return {m < patch_rows ? m : patch_rows, n, depth,
          makes_right || (is_narrow ? copied_panels_pay(m, n, depth, tile_columns)
                                    : n * extent(sizeof(T)) >= far_apart)};
}
/// Bytes of a block of patches, as numbers and, where these are wider than values, before it as
/// values.
template <class T, class V>
constexpr long patch_block_bytes(extent depth) {
  return detail::align_up(patch_rows * depth * long(sizeof(T))) +
         (in_place<T, V> ? 0 : detail::align_up(patch_rows * depth * long(sizeof(V))));
}
/// Bytes of the block of patches and of the workspace of a product with such patches, for factors
/// of this number of slices, too.
template <class T, class V>
constexpr long patch_bytes(extent n, extent k, int slices) {
  extent const depth = k < patch_depth && slices == 0 ? k : patch_depth;
  std::size_t const vectors = contraction_workspace<T>(n, k, blocking{patch_rows, n, depth, true});
  std::size_t const sliced =
      slices == 0 ? 0 : sliced_product_workspace<T>(patch_rows, n, k, slices, patch_depth);
  return patch_block_bytes<T, V>(depth) +
         detail::align_up(long(vectors < sliced ? sliced : vectors));
}

/// Facts of y = conv(x, w), whose parts own rows of y.
struct convolution_facts {
  template <class T, class V = T, int Slices = 0>
  static constexpr long workspace_bytes(detail::group const& g, int, int) {
    detail::convolution_attributes const of = g.attributes.convolution();
    long const results = detail::align_up(patch_rows * g.columns * long(sizeof(T)));
    if (of.is_depthwise()) return results;
    extent const read = of.channels + of.filters - g.columns;  // channels of the source
    return results +
           patch_bytes<T, V>(g.columns / of.groups, extent(of.taps()) * (read / of.groups), Slices);
  }
  static constexpr int parts(detail::group const& g, int samples, int threads) {
    return parts_for(g, samples, threads, 1 + g.attributes.convolution().inner() * product_work);
  }
  static constexpr int tile_rows(detail::group const& g, int samples) { return g.rows * samples; }
};
/// Facts of dx, whose parts own rows of each phase.
struct convolution_input_gradient_facts : convolution_facts {
  static constexpr int tile_rows(detail::group const& g, int samples) {
    detail::convolution_attributes const of = g.attributes.convolution();
    return of.vertical.stride * of.horizontal.stride == 1 ? g.rows * samples : 1;
  }
};
/// Facts of dw, whose parts own rows of dw or, in a depthwise convolution, columns.
struct convolution_weight_gradient_facts : convolution_facts {
  template <class T, class V = T, int Slices = 0>
  static constexpr long workspace_bytes(detail::group const& g, int samples, int) {
    detail::convolution_attributes const of = g.attributes.convolution();
    if (of.is_depthwise()) return detail::align_up(long(g.columns) * of.taps() * long(sizeof(T)));
    return patch_bytes<T, V>(g.columns / of.groups, extent(g.rows) * samples, Slices);
  }
  static constexpr int tile_rows(detail::group const& g, int) {
    return g.attributes.convolution().inner();
  }
};

}  // namespace pp::host
