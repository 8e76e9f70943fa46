// SPDX-License-Identifier: BSL-1.0
//
// Tables of a rank's parameters that replicas divide (ZeRO<2>, ZeRO<3>), and of the operands of the
// rank's launches that are such parameters or their gradients, so that a step searches for nothing.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/view.hpp>
#include <pipe/passes/programs.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/shards.hpp>

namespace pp::detail {

/// A parameter that replicas divide, and its buckets among all buckets of the rank's divided
/// parameters.
///
/// units: bytes
struct divided_parameter {
  int chunk = 0;
  parameter_place const* of = nullptr;
  long bytes = 0;  ///< of the values or of the gradient, padded
  range buckets{};
  divided_copies copies{};  ///< behind the values
};

/// An operand of a launch of a program that is a divided parameter, one of its copies or its
/// gradient. operand: its index in the launch. parameter: the number of the parameter
/// in divided_operands. offset: bytes from the start of the memory that has the parameter, or its
/// gradient, as a whole.
struct divided_operand {
  int launch = 0, operand = 0, parameter = 0;
  bool is_gradient = false;
  long offset = 0;
};

/// The tables of one rank: parameters in the order of chunks and offsets, operands in the order of
/// programs and launches. Only with ZeRO<3> are values and their copies among the operands.
class divided_operands {
 public:
  /// The number of a chunk's program among all programs of a pipeline.
  static int program_number(pipeline_description const& d, int chunk, program_set const& set,
                            program p) {
    return (2 * chunk + (&set == &d.chunk[chunk].dropping)) * program_count + int(p);
  }
  [[gnu::cold]] void assemble(pipeline_description const& d, long width, int rank) {
    long const value_width = size_of(d.value_type);
    fill(parameters_, [&](sink<divided_parameter>& to) {
      buckets_ = 0;
      for (int c = 0; c < d.chunks; ++c) {
        if (d.chunk[c].rank != rank) continue;
        shard_cuts const cuts{d.chunk[c], width, 1};
        cuts.for_each_divided([&](parameter_place const& p) {
          int const first = buckets_;
          buckets_ += cuts.buckets_of(p);
          long const bytes = cuts.bytes_of(p);
          to.push_back({c, &p, bytes, {first, buckets_}, {bytes, width, value_width, p}});
        });
      }
    });
    first_launch_ = heap_array<int>(2 * d.chunks * program_count + 1);
    sink<int> firsts;
    sink<divided_operand> operands;
    list(d, rank, firsts, operands);
    first_operand_ = heap_array<int>(firsts.count);
    operands_ = heap_array<divided_operand>(operands.count);
    firsts = {first_operand_.begin()}, operands = {operands_.begin()};
    list(d, rank, firsts, operands);
  }

  heap_array<divided_parameter> const& parameters() const { return parameters_; }
  int buckets() const { return buckets_; }
  /// The divided operands of launch i of a program; after_launch: of all launches after it.
  view<divided_operand> of_launch(int program, int i) const {
    int const* const first = first_operand_.begin() + first_launch_[program] + i;
    return operands({first[0], first[1]});
  }
  view<divided_operand> after_launch(int program, int i) const {
    return operands({first_operand_[first_launch_[program] + i + 1],
                     first_operand_[first_launch_[program + 1]]});
  }
  /// The number of the divided parameter that has a bucket of a chunk; -1 if the bucket is of
  /// parameters that are not divided.
  [[gnu::cold]] int parameter_of(int chunk, int bucket) const {
    for (int i = 0; i < int(parameters_.size()); ++i) {
      if (parameters_[i].chunk != chunk) continue;
      bucket -= parameters_[i].buckets.size();
      if (bucket < 0) return i;
    }
    return -1;
  }

 private:
  view<divided_operand> operands(range of) const {
    return view<divided_operand>{operands_.begin(), int(operands_.size())}.part(of);
  }
  /// Lists the operands, and the number of the first operand of each launch and of the end.
  [[gnu::cold]] void list(pipeline_description const& d, int rank, sink<int>& firsts,
                          sink<divided_operand>& to) {
    for (int c = 0; c < d.chunks; ++c)
      for (program_set const* set : {&d.chunk[c].keeping, &d.chunk[c].dropping})
        for (int p = 0; p < program_count; ++p) {
          int const number = program_number(d, c, *set, program(p));
          first_launch_[number] = firsts.count;
          program_view const& view = set->programs[p];
          for (int i = 0; i < view.count && d.chunk[c].rank == rank; ++i) {
            firsts.push_back(to.count);
            launch const& l = view.launches[i];
            for (int k = 0; k < l.count; ++k) add(d, c, {i, k}, view.operands[l.first + k].at, to);
          }
          first_launch_[number + 1] = firsts.count;
        }
    firsts.push_back(to.count);
  }
  /// Adds an operand of a launch of chunk c to the list, if it is of a divided parameter.
  [[gnu::cold]] void add(pipeline_description const& d, int c, divided_operand o, address const& a,
                         sink<divided_operand>& to) const {
    bool const is_gradient = d.divides_gradients && a.where == region::parameter_gradients,
               is_transposed = d.zero > 2 && a.where == region::transposed,
               is_narrow = d.zero > 2 && a.where == region::copies,
               is_copy = is_transposed || is_narrow;
    if (!is_gradient && !is_copy && !(d.zero > 2 && a.where == region::parameters)) return;
    for (int i = 0; i < int(parameters_.size()); ++i) {
      divided_parameter const& p = parameters_[i];
      long const begin = is_transposed ? p.of->transposed
                         : is_narrow   ? p.of->offset / d.element_bytes * size_of(d.value_type)
                                       : p.of->offset,
                 size = is_copy ? p.copies.size : p.bytes,
                 at = is_transposed ? p.copies.transposed()
                      : is_narrow   ? p.copies.narrow
                                    : 0;
      if (p.chunk == c && begin >= 0 && a.offset >= begin && a.offset < begin + size)
        to.push_back({o.launch, o.operand, i, is_gradient, a.offset - begin + at});
    }
  }

  heap_array<divided_parameter> parameters_;
  heap_array<divided_operand> operands_;
  heap_array<int> first_operand_;  // by launch, and the end
  heap_array<int> first_launch_;   // by program, and the end
  int buckets_ = 0;
};

}  // namespace pp::detail
