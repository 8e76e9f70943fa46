// SPDX-License-Identifier: BSL-1.0
//
// The CPU backend: for every kernel group of a pipeline one function for each instruction set, and
// the table of the functions for the best set that this machine has.
#pragma once

#include <type_traits>
#include <utility>

#include <pipe/backend/backend.hpp>
#include <pipe/backend/host/amx.hpp>
#include <pipe/backend/host/kernel_facts.hpp>
#include <pipe/backend/host/kernels.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/base/list.hpp>
#include <pipe/base/view.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/passes/chains.hpp>

namespace pp {

namespace host {

/// The functions that a rank calls: the kernel groups of pipeline P, and functions over parameters.
template <class P>
struct kernels {
  using T = typename P::element;
  using O = typename P::optimizer;
  isa runs_on = isa::portable;
  product_unit unit = product_unit::vectors;  ///< of products of 16-bit numbers
  detail::list<kernel<T>, P::groups> groups;
  void (*update)(O const&, typename P::context const&, typename P::tensor const&, bool whole,
                 part_range own) = nullptr;
  double (*sum_of_squares)(extent, T const*) = nullptr;
  void (*add)(extent, T*, T const*) = nullptr;  ///< null unless gradients are added
  void (*clamp)(extent, T*, T) = nullptr;
  void (*approach)(extent, T*, T const*, T) = nullptr;  ///< null unless averages are kept
  void (*transpose)(T const* in, extent rows, extent columns, extent in_stride, void* out,
                    extent out_stride) = nullptr;
  /// See transpose_to_panels; null where products read no panels.
  void (*to_panels)(T const* in, part_range own, extent rows, extent columns, void* out) = nullptr;
  void (*narrow)(T const*, extent,
                 void*) = nullptr;  ///< null where values are numbers: see in_place
  void (*widen)(void const*, extent, T*) = nullptr;  ///< null likewise
};

/// The best set for pipeline P on this machine.
template <class P>
isa best_isa_for() {
  isa const best = best_isa_for_vectors();
  if constexpr (slices_of<typename P::precision> > 0)
    if (best == isa::amx && !has_amx())
      return has_fast_avx512_bf16() ? isa::avx512_bf16 : isa::emulated_amx;
  return best;
}
/// The unit of pipeline P's products. Those of several slices are always AMX's or its emulation;
/// those of one slice, of BF16, are by AMX or AVX-512-BF16 in the sets that say so.
template <class P, isa Set>
product_unit unit_of() {
  constexpr int slices = slices_of<typename P::precision>;
  if constexpr (slices == 0 || (slices == 1 && vectors_of(Set) == Set))
    return product_unit::vectors;
  else if constexpr (slices == 1 && Set == isa::emulated_avx512_bf16)
    return product_unit::emulated_avx512_bf16;
  else if constexpr (slices == 1 && Set == isa::avx512_bf16)
    return has_avx512_bf16() ? product_unit::avx512_bf16 : product_unit::emulated_avx512_bf16;
  else if constexpr (Set == isa::emulated_amx)
    return product_unit::emulated_amx;
  else
    return has_amx() ? product_unit::amx : product_unit::emulated_amx;
}

/// The table of pipeline P compiled for instruction set `Set`.
///
/// needs: a processor that has the set, when a function of the table is called
template <class P, isa Set>
kernels<P> kernels_for() {
  constexpr auto all = std::make_index_sequence<std::size_t(P::groups)>{};
  kernels<P> k;
  k.runs_on = slices_of<typename P::precision> == 1 ? Set : vectors_of(Set);
  k.unit = unit_of<P, Set>();
#ifdef __x86_64__
  if constexpr (vectors_of(Set) == isa::avx512)
    avx512::fill(k, all);
  else if constexpr (Set == isa::avx2)
    avx2::fill(k, all);
  else
#endif
    portable::fill(k, all);
  return k;
}

}  // namespace host

namespace detail {

/// Base of the backends whose kernels run on the CPU: HostKernels and types derived from it.
struct host_backend {};

}  // namespace detail

/// The CPU backend with kernels for the given instruction sets, best last; a run uses the best of
/// them that the machine has. Fewer sets compile faster.
template <host::isa... Sets>
struct HostKernels : detail::host_backend {
  static constexpr char const* name = "host";
  static constexpr bool has_own_memory = false, has_transposes = true;
  /// Tiles of numbers read panels; slices and values that are widened are copied as they are read.
  template <class Precision>
  static constexpr bool has_panels =
      host::in_place<typename Precision::element, typename Precision::value> &&
      host::slices_of<Precision> == 0;

  /// Every launch runs one group.
  template <class Precision, class Products>
  using chains = detail::no_chains;

  /// The number of parts in which a group runs on a rank with this number of threads.
  static constexpr int parts_for(detail::group const& g, int samples, int threads) {
    return host::parts_of(g, samples, threads);
  }
  /// Bytes of workspace for each thread: enough for every group of pipeline P.
  template <class P>
  static constexpr long workspace_of(detail::view<detail::group> groups) {
    long most = 0;
    for (detail::group const& g : groups) {
      int const parts = P::threads == 1 ? 1 : parts_for(g, P::samples, P::threads);
      long const needed =
          host::workspace_bytes<typename P::element, host::value_of<P>,
                                host::slices_of<typename P::precision>>(g, P::samples, parts);
      if (needed > most) most = needed;
      if constexpr (host::takes_lengths<P>)
        if (detail::is_contraction(g.anchor)) {
          long const of_lengths =
              host::workspace_bytes_of_lengths<typename P::element, host::value_of<P>,
                                               host::slices_of<typename P::precision>>(
                  g, P::samples, parts);
          if (of_lengths > most) most = of_lengths;
        }
    }
    return detail::align_up(most);
  }
  /// Numbers of workspace that an optimizer's product c[m, n] = a[m, k] b[k, n] needs.
  template <class T>
  static constexpr long contraction_elements(long m, long n, long k) {
    return detail::padded<T>(long(host::contraction_workspace<T>(m, n, k)) / long(sizeof(T)));
  }
  /// Whether products have the format of values, which have the type of parameters or, beside
  /// parameters in fp32, are bfloat16; or fp32 factors are several slices.
  template <class Precision>
  static constexpr bool computes_in =
      ((host::slices_of<Precision> > 1 && std::is_same_v<typename Precision::value, float>) ||
       Precision::product == detail::dtype_of<typename Precision::value>::value) &&
      (std::is_same_v<typename Precision::element, typename Precision::value> ||
       (std::is_same_v<typename Precision::element, float> &&
        std::is_same_v<typename Precision::value, bf16>));
  template <class Chosen>
  static constexpr auto diagnose() {
    if constexpr (!computes_in<typename Chosen::precision>)
      return detail::diagnosis_of<wrong::backend_has_no_such_precision, HostKernels,
                                  typename Chosen::precision>();
    else if constexpr (detail::device_transport<typename Chosen::transport::transport>)
      return detail::diagnosis_of<wrong::transport_is_between_devices, HostKernels,
                                  typename Chosen::transport>();
    else if constexpr (Chosen::needs_cublaslt)
      return detail::diagnosis_of<wrong::host_has_no_cublaslt, HostKernels,
                                  typename Chosen::products>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
  /// Every layer runs on the host.
  template <class M, class Chosen>
  static constexpr auto diagnose_model() {
    return std::type_identity<detail::nothing_wrong>{};
  }

  /// Calls f.template operator()<Set>() for the sets up to `best`, the best one last. Portable
  /// kernels are not compiled if every processor that can run this program has one of the sets: f
  /// is called for that set whatever `best` is.
  template <class F>
  static void for_each_set(host::isa best, F const& f) {
    constexpr bool needs_portable = ((Sets > host::least_isa()) && ...);
    if constexpr (needs_portable) f.template operator()<host::isa::portable>();
    ((Sets <= best || Sets <= host::least_isa() ? f.template operator()<Sets>() : void()), ...);
  }
  /// The kernels of the last set that for_each_set calls.
  template <class P>
  static host::kernels<P> kernels(host::isa best = host::best_isa_for<P>()) {
    host::kernels<P> chosen;
    for_each_set(best, [&]<host::isa Set>() { chosen = host::kernels_for<P, Set>(); });
    return chosen;
  }
};

namespace detail {

constexpr auto host_of_usual_sets() {
  using enum host::isa;
#ifdef PIPE_INSTRUCTION_SETS
  return HostKernels<PIPE_INSTRUCTION_SETS>{};
#else
  return HostKernels<avx2, avx512, avx512_bf16, amx>{};
#endif
}

}  // namespace detail

/// The CPU backend with kernels for AVX-512, AVX2 and portable vectors, and AMX or, on AMD's
/// processors, AVX-512-BF16 for the products of BF16, chosen at run time. A program for known
/// processors compiles faster with their set alone: `-DPIPE_INSTRUCTION_SETS=avx512`, or
/// avx512,amx.
using Host = decltype(detail::host_of_usual_sets());
/// The CPU backend with portable vectors alone, for tests and for machines without AVX: it compiles
/// in a third of the time.
using PortableHost = HostKernels<>;

}  // namespace pp
