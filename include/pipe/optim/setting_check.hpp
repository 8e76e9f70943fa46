// SPDX-License-Identifier: BSL-1.0
//
// Checks of settings before training. Their owner (an optimizer, a learning-rate schedule) declares
// their ranges in one member:
//
//     void check(custom::setting_check const& is) const {
//       is.fraction("beta1", beta1);
//       is.positive("epsilon", epsilon);
//     }
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/sentence.hpp>

namespace pp {

namespace custom {

/// Checks that throw data_error for a number out of range: "AdamW.beta1: expected a number in [0,
/// 1), got 2". NaN is in no range. Numbers are at most 1e30, so that their products with ordinary
/// numbers fit fp32.
///
/// throws: pp::data_error from every check, which names the owner, the setting and its value
class setting_check {
 public:
  /// owner: the name of the type whose settings are checked; must outlive the check.
  explicit constexpr setting_check(std::string_view owner = {}) : owner_(owner) {}
  /// A check that also adds the numbers to a hash, by which settings are compared.
  constexpr setting_check(std::string_view owner, detail::fnv_hash& hash)
      : owner_(owner), hash_(&hash) {}

  /// In [0, 1e30]: learning rates, weight decay, clipping.
  static constexpr char const* amounts = "a number in [0, 1e30]";
  static constexpr bool is_amount(double value) { return value >= 0 && value <= 1e30; }
  void amount(std::string_view name, double value) const {
    see(value);
    if (!is_amount(value)) refuse(name, value, amounts);
  }
  /// In [1e-37, 1e30]: divisors.
  void positive(std::string_view name, double value) const {
    see(value);
    if (!(value >= 1e-37 && value <= 1e30)) refuse(name, value, "a number in [1e-37, 1e30]");
  }
  /// In [0, 1): momentum and betas.
  void fraction(std::string_view name, double value) const {
    see(value);
    if (!(value >= 0 && value < 1)) refuse(name, value, "a number in [0, 1)");
  }
  /// In [-1e30, 1e30].
  void number(std::string_view name, double value) const {
    see(value);
    if (!(value >= -1e30 && value <= 1e30)) refuse(name, value, "a number in [-1e30, 1e30]");
  }
  /// At least `least`.
  void count(std::string_view name, long value, long least) const {
    see(double(value));
    if (value < least)
      detail::throw_error<data_error>(
          {owner_, dot(), name, ": expected ", least, " or more, got ", value});
  }

  /// Throws data_error: `value` is not what was expected.
  [[noreturn, gnu::cold]] void refuse(std::string_view name, double value,
                                      char const* expected) const {
    detail::throw_error<data_error>(
        {owner_, dot(), name, ": expected ", expected, ", got ", value});
  }

 private:
  /// The separator after the owner; none without an owner.
  char const* dot() const { return owner_.empty() ? "" : "."; }

  void see(double value) const {
    if (hash_ == nullptr) return;
    unsigned char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    for (unsigned char const b : bytes) hash_->add(b);
  }

  std::string_view owner_;
  detail::fnv_hash* hash_ = nullptr;
};

}  // namespace custom

namespace detail {

/// Settings with a check().
template <class S>
concept checked_settings = requires(S const& s, custom::setting_check const& is) { s.check(is); };

/// A hash of an optimizer's settings, by which processes compare them: those that it checks.
template <class O>
[[gnu::cold]] std::uint64_t hash_of(O const& o) {
  fnv_hash hash;
  if constexpr (checked_settings<O>) o.check(custom::setting_check(O::name, hash));
  return hash.value;
}

}  // namespace detail

}  // namespace pp
