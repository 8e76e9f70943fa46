// SPDX-License-Identifier: BSL-1.0
//
// Checks of a batch: sizes, ids and targets before a run; values that are not finite only after a
// step was rejected. A scan in every step would cost time, and such values may be harmless to the
// model.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/shape.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Name of a part of a batch, for messages: `labels`, or `input "target"`.
struct batch_part {
  char const* what;
  std::string_view name{};
  char const* quote() const { return name.empty() ? "" : "\""; }
};

/// Throws data_error for an array of another size than expected.
[[gnu::cold]] PIPE_ONE_COPY inline void check_size(batch_part of, std::size_t found,
                                                   std::size_t expected) {
  if (found != expected)
    throw_error<data_error>({of.what, of.quote(), of.name, of.quote(), ": expected ", expected,
                             " numbers, got ", found});
}

/// The lengths of an input in messages: of an input by its name, none for the first one.
constexpr batch_part lengths_part(std::string_view name) {
  return name.empty() ? batch_part{"lengths"} : batch_part{"lengths of input ", name};
}
/// Throws data_error for a length that is not in [0, context]. position: of its sample
inline void check_length(batch_part of, int length, std::size_t position, std::size_t context) {
  if (length < 0 || std::size_t(length) > context)
    throw_error<data_error>({of.what, of.quote(), of.name, of.quote(), ": ", length,
                             " at position ", position, " is not in [0, ", context, "]"});
}
/// Calls use(length, place) for the samples of an input whose `ids` ids lie one behind the other;
/// place: of the first of a sample's ids among all.
///
/// throws: data_error for a length that is not in [0, context], or lengths that do not add up
template <class Use>
void for_each_length(batch_part of, std::span<int const> lengths, std::size_t ids,
                     std::size_t context, Use const& use) {
  std::size_t place = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    check_length(of, lengths[s], s, context);
    use(lengths[s], place);
    place += std::size_t(lengths[s]);
  }
  if (place != ids)
    throw_error<data_error>({of.what, of.quote(), of.name, of.quote(), ": their sum is ", place,
                             ", but there are ", ids, " inputs"});
}
/// Throws data_error unless there are the lengths of as many samples as expected.
inline void check_lengths(batch_part of, std::size_t found, std::size_t expected) {
  if (found != expected)
    throw_error<data_error>({of.what, of.quote(), of.name, of.quote(), ": expected ", expected,
                             " samples, got ", found});
}

/// Throws data_error for numbers that are not those of whole images: some have other extents.
///
/// needs: a shape of height, width and channels
[[gnu::cold]] PIPE_ONE_COPY inline void check_images(std::size_t numbers,
                                                     sample_shape const& image) {
  if (numbers % std::size_t(image.elements()) != 0)
    throw_error<data_error>({"inputs: expected images of ", image.extent[0], " x ", image.extent[1],
                             " x ", image.extent[2], ", ", image.elements(), " numbers each, got ",
                             numbers, " numbers: crop or pad images of other extents"});
}

/// Index of the first of n values that fails a predicate; n if none does. Blocks of 64 are tested
/// without a branch, so that the loop vectorizes.
template <class T, class Fits>
long first_that_does_not_fit(T const* values, long n, Fits fits) {
  constexpr long block = 64;
  long i = 0;
  for (int unfit = 0; i + block <= n; i += block) {
    for (int k = 0; k < block; ++k) unfit |= fits(values[i + k]) ? 0 : 1;
    if (unfit) break;
  }
  while (i < n && fits(values[i])) ++i;
  return i;
}

/// Throws data_error for a value at a position: an id, a target, a weight.
[[noreturn, gnu::cold]] PIPE_ONE_COPY inline void reject_id(char const* what, int id, long position,
                                                            int least, int end) {
  throw_error<data_error>(
      {what, " ", id, " at position ", position, " is not in [", least, ", ", end, ")"});
}
template <class Loss>
[[noreturn, gnu::cold]] void reject_target(double target, long position) {
  throw_error<data_error>({"label ", target, " at position ", position, " is not in [",
                           Loss::least_target, ", ", Loss::most_target, "]"});
}
[[noreturn, gnu::cold]] PIPE_ONE_COPY inline void reject_weight(double weight, long position) {
  throw_error<data_error>(
      {"weight ", weight, " at position ", position, " is not a finite number of 0 or more"});
}

/// Throws data_error for the first id outside [least, end).
inline void check_ids(char const* what, std::span<int const> ids, int least, int end) {
  long const n = long(ids.size()), i = first_that_does_not_fit(ids.data(), n, [=](int id) {
                                     return (id >= least) & (id < end);
                                   });
  if (i < n) reject_id(what, ids.data()[i], i, least, end);
}

/// Throws data_error for the first target outside [least_target, most_target], for a loss with such
/// a range. NaN is outside.
template <class Loss, class T>
void check_targets(std::span<T const> targets) {
  if constexpr (requires { Loss::least_target; }) {
    long const n = long(targets.size()),
               i = first_that_does_not_fit(targets.data(), n, [](T target) {
                 return (target >= T(Loss::least_target)) & (target <= T(Loss::most_target));
               });
    if (i < n) reject_target<Loss>(double(targets.data()[i]), i);
  }
}

/// Throws data_error for the first weight that is negative or not finite.
template <class T>
void check_weights(std::span<T const> weights) {
  long const n = long(weights.size()),
             i = first_that_does_not_fit(weights.data(), n, [](T weight) {
               return (weight >= 0) & (weight <= std::numeric_limits<T>::max());
             });
  if (i < n) reject_weight(double(weights.data()[i]), i);
}

/// Index of the first value that is not finite; `count` if all are.
template <class T>
[[gnu::cold]] PIPE_ONE_COPY long first_not_finite(T const* values, long count) {
  long i = 0;
  while (i < count && libm::isfinite(values[i])) ++i;
  return i;
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
