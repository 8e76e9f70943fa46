// SPDX-License-Identifier: BSL-1.0
//
// The concept of a backend: the facts that the memory plan reads, and what a backend refuses. The
// kernels are in the backend's own folder, its engine is in the runtime (runtime/runtime_of.hpp).
#pragma once

#include <concepts>
#include <type_traits>

#include <pipe/base/diagnosis.hpp>
#include <pipe/graph/diagnostics.hpp>
#include <pipe/passes/group.hpp>

namespace pp {

namespace detail {

/// Multiprocessors that P, the option of a transport or a pipeline, leaves to the kernels of the
/// transport; 0 if P has no such constant.
template <class P>
constexpr int reserved_multiprocessors() {
  if constexpr (requires { P::reserved_multiprocessors; })
    return P::reserved_multiprocessors;
  else
    return 0;
}

/// Whether products of backend B read transposed copies in panels.
template <class B, class Precision>
constexpr bool reads_panels() {
  if constexpr (requires { B::template has_panels<Precision>; })
    return B::template has_panels<Precision>;
  else
    return false;
}

/// A backend, an option of a Pipeline:
///
///     name                              in reports
///     has_own_memory                    whether inputs are copied to its memory, where the machine
///                                       also keeps its books
///     has_transposes                    whether it keeps transposed copies of the matrices that
///                                       are read transposed; else kernels transpose as they read
///     has_panels<Precision>             whether products read these copies in panels: see
///                                       copy_layout; false if it is missing
///     parts_for(group, samples, threads)    in how many parts the threads of a rank run a group
///     chains<Precision, Products>       which launches it runs as one (passes/chains.hpp)
///     contraction_elements<T>(m, n, k)  numbers of workspace of an optimizer's product c[m, n] =
///                                       a[m, k] b[k, n]
///     diagnose<Chosen>()                what is wrong with the options beside it: a type in
///                                       `wrong`, or nothing_wrong; Chosen has `precision`,
///                                       `optimizer`, `products`, `needs_cublaslt`, `transport` and
///                                       `sum`
///     diagnose_model<M, Chosen>()       what is wrong with the layers of model M
template <class B>
concept compute_backend = requires(group const& g) {
  { B::name } -> std::convertible_to<char const*>;
  { B::has_own_memory } -> std::convertible_to<bool>;
  { B::has_transposes } -> std::convertible_to<bool>;
  { B::parts_for(g, 1, 1) } -> std::same_as<int>;
  { B::template contraction_elements<float>(1L, 1L, 1L) } -> std::same_as<long>;
};

/// A transport between processes, each with a device of its own: see runtime/cuda/processes.cuh.
/// The transport moves device memory on streams, so the backend must have device memory.
template <class T>
concept device_transport = requires { requires bool(T::is_between_devices) && bool(T::copies); };

/// The diagnosis of a program that passes arrays in device memory, for a backend and the option of
/// its devices.
template <class Backend, class Devices>
constexpr auto diagnose_use_of_device_data() {
  if constexpr (!Backend::has_own_memory)
    return diagnosis_of<wrong::host_has_no_device_memory, Backend>();
  else if constexpr (Devices::count > 1)
    return diagnosis_of<wrong::arrays_are_on_one_device, Devices>();
  else
    return std::type_identity<nothing_wrong>{};
}

}  // namespace detail

}  // namespace pp
