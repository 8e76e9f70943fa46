// SPDX-License-Identifier: BSL-1.0
//
// A view of numbers in a GPU's memory, as std::span is one of numbers in the host's. No header of
// CUDA or Thrust is needed: a `thrust::device_vector` is known by its pointers.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace pp {

namespace detail {

/// A pointer class of device memory, as thrust::device_ptr: get() is the address.
template <class P>
concept device_pointer = std::is_class_v<P> && requires(P const& p) {
  { p.get() };
  requires std::is_pointer_v<decltype(p.get())>;
};
/// A list in device memory, as thrust::device_vector.
template <class L>
concept device_vector_like = requires(L& list) {
  { list.data() } -> device_pointer;
  { list.size() } -> std::convertible_to<std::size_t>;
};
/// From is, or is to be read as, To: T and T const, as of elements of spans.
template <class From, class To>
concept elements_convert = std::convertible_to<From (*)[], To (*)[]>;

}  // namespace detail

/// `size()` numbers in the memory of a GPU, from `data()` on, which the host must not read. Made of
/// an address and a number, or of a `thrust::device_vector`; a copy is as cheap as of a pointer.
///
/// needs: the memory outlives the view
template <class T>
class device_span {
 public:
  using element_type = T;

  constexpr device_span() = default;
  constexpr device_span(T* data, std::size_t size) : data_(data), size_(size) {}
  /// A part of a list: `{v.data() + 5, 10}` of a thrust::device_vector.
  template <detail::device_pointer P>
    requires detail::elements_convert<std::remove_pointer_t<decltype(std::declval<P>().get())>, T>
  constexpr device_span(P const& data, std::size_t size) : data_(data.get()), size_(size) {}
  template <detail::device_vector_like L>
    requires detail::elements_convert<
                 std::remove_pointer_t<decltype(std::declval<L&>().data().get())>, T>
  constexpr device_span(L&& list) : data_(list.data().get()), size_(list.size()) {}
  template <class U>
    requires(!std::is_same_v<U, T> && detail::elements_convert<U, T>)
  constexpr device_span(device_span<U> const& other) : data_(other.data()), size_(other.size()) {}

  /// An address in device memory.
  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  /// needs: first + count <= size()
  constexpr device_span subspan(std::size_t first, std::size_t count) const {
    return {data_ + first, count};
  }
  constexpr device_span first(std::size_t count) const { return {data_, count}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

template <class T>
constexpr void convert_to_device_span(device_span<T> const&) {}

/// The sources of a device_span: one of any element, or a list in device memory.
template <class L>
concept device_list = requires(L const& list) { detail::convert_to_device_span(list); } ||
                      device_vector_like<std::remove_reference_t<L>>;

}  // namespace detail

}  // namespace pp
