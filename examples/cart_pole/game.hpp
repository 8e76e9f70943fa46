// SPDX-License-Identifier: BSL-1.0
//
// The game: a pole on a cart (Barto, Sutton and Anderson, 1983), with the constants of Gymnasium's
// CartPole-v1.
#pragma once

#include <array>
#include <cmath>
#include <random>

/// A pole on a cart that is pushed to the left or to the right.
class cart_pole {
 public:
  static constexpr int most_turns = 500;

  explicit cart_pole(unsigned seed) : random_(seed) { begin(); }

  std::array<float, 4> seen() const {
    return {float(place_), float(speed_), float(angle_), float(turn_speed_)};
  }
  void begin() {
    std::uniform_real_distribution<double> const near_0(-0.05, 0.05);
    auto& r = random_;
    place_ = at(near_0, r), speed_ = at(near_0, r), angle_ = at(near_0, r),
    turn_speed_ = at(near_0, r);
    turns_ = 0;
  }
  /// Whether the pole has fallen or the cart has left its track.
  bool push(bool right) {
    constexpr double gravity = 9.8, pole = 0.1, mass = 1 + pole, half = 0.5, seconds = 0.02;
    double const sine = std::sin(angle_), cosine = std::cos(angle_);
    double const pushed =
        ((right ? 10 : -10) + pole * half * turn_speed_ * turn_speed_ * sine) / mass;
    double const turned =
        (gravity * sine - cosine * pushed) / (half * (4.0 / 3 - pole * cosine * cosine / mass));
    place_ += seconds * speed_;
    speed_ += seconds * (pushed - pole * half * turned * cosine / mass);
    angle_ += seconds * turn_speed_;
    turn_speed_ += seconds * turned;
    ++turns_;
    return std::abs(place_) > 2.4 || std::abs(angle_) > 12 * 3.14159265 / 180;
  }
  int turns() const { return turns_; }

 private:
  static double at(std::uniform_real_distribution<double> d, std::mt19937& r) { return d(r); }

  std::mt19937 random_;
  double place_ = 0, speed_ = 0, angle_ = 0, turn_speed_ = 0;
  int turns_ = 0;
};
