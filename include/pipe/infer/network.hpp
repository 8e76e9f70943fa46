// SPDX-License-Identifier: BSL-1.0
//
// A model that only runs, on the host: its weights, and the kernels of forward alone. A trainer has
// room for gradients and optimizer state and compiles backward as well; a network can be read by
// any number of threads at once.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/backend/host/arithmetic.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/error.hpp>
#include <pipe/plan/compiled/compiled_pipeline.hpp>
#include <pipe/plan/compiled/diagnose_pipeline.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/arena.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/initialize_parameters.hpp>
#include <pipe/train/parts/outputs.hpp>
#include <pipe/train/parts/view_parameters.hpp>
#include <pipe/weights/named_parameter.hpp>
#include <pipe/weights/names.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp {

namespace detail {

/// The kernel groups that forward runs for its outputs: all but those of losses. Programs: a
/// stage's programs.
template <class Programs>
constexpr bool runs_in_inference(int group) {
  constexpr unplaced_program forward = Programs::template unplaced<program::forward>;
  for (int i = 0; i < forward.size(); ++i)
    if (forward.group_of(i) == group) return !is_loss(forward.shape(i).anchor);
  return false;
}

}  // namespace detail

/// A model that only runs: for load_weights, save_weights and copy_weights, which write it, and
/// forward(), which is const.
///
///     network<Digits> net;
///     load_weights(net, "digits.safetensors");
///     network<Digits>::workspace room;      // one for each thread
///     net.forward(picture, scores, room);
///
/// Any number of threads may call forward() at once, each with a workspace of its own, while no
/// thread writes the weights. A program that loads new ones while others read makes a second
/// network, and hands it over by a std::shared_ptr.
///
/// Samples: those that kernels compute at once; a call may have any number.
///
/// law: outputs are those of Trainer::forward with the same weights, bit for bit, whatever Samples
/// law: forward() allocates nothing and starts no thread
/// memory: the weights, and for each workspace the values of Samples samples
template <class Given, int Samples = 1, class Precision = FP32, class Backend = Host>
class network {
  using made = detail::made_from<Given, MicroBatchSize<Samples>, Precision, Backend>;
  // The name of the diagnosis is a heading in docs/reference/errors.md.
  static_assert(decltype(detail::diagnosed(typename made::diagnosis{}))::ok);
  static_assert(!Backend::has_own_memory, "a network runs on the host");
  static_assert(std::is_same_v<typename Precision::element, typename Precision::value> &&
                    host::slices_of<Precision> == 0,
                "a network computes in FP32 or FP64: see docs/reference/not_yet.md");
  static constexpr bool reports = detail::model_type<Given> && made::model::valid;

 public:
  using model = typename made::model;
  using compiled = typename made::compiled;
  using element = typename compiled::element;
  using batch = detail::batch_of<model, element, reports>;
  static constexpr long inputs_per_sample = detail::model_tables<model>::inputs[0].form.elements();
  static constexpr long outputs_per_sample = detail::model_tables<model>::output.elements();
  template <int Index>
  using input_values = typename batch::template input_values<Index>;
  using output_values =
      detail::values_for<element, wrong::outputs_have_the_wrong_type, Given, reports>;
  /// For load_weights, which then needs no memory for a second copy.
  static constexpr bool is_read_in_place = true;

 private:
  using stage = typename compiled::template stage<0>;
  using programs = typename stage::any_programs;
  static constexpr detail::stage_bytes bytes_of = programs::layout.bytes;
  static constexpr int groups = compiled::groups;
  static constexpr auto const& inputs = detail::model_tables<model>::inputs;

  static constexpr long bytes_of_input(int i) {
    return Samples * inputs[i].form.elements() *
           long(inputs[i].is_ids ? sizeof(int) : sizeof(element));
  }

  /// Where regions begin in the memory of the weights, and in a workspace.
  struct places {
    long parameters = 0, buffers = 0, transposed = 0, weights = 0;  // weights: the end
    long record = 0, scratch = 0, sums = 0, kernels = 0, input[detail::max_inputs]{}, values = 0;
  };
  static constexpr places at = [] {
    places p;
    auto const take = [](long& end, long bytes) {
      long const begin = end;
      end += detail::align_up(bytes);
      return begin;
    };
    p.parameters = take(p.weights, bytes_of.parameters);
    p.buffers = take(p.weights, bytes_of.buffers);
    p.transposed = take(p.weights, bytes_of.transposed);
    p.record = take(p.values, bytes_of.record);
    p.scratch = take(p.values, bytes_of.scratch);
    p.sums = take(p.values, bytes_of.sums);
    long most = 0;
    for (int g = 0; g < groups; ++g)
      if (detail::runs_in_inference<programs>(g))
        if (long const n = host::workspace_bytes<element>(compiled::group_at(g), Samples); n > most)
          most = n;
    p.kernels = take(p.values, most);
    // A micro-batch that is not full is copied here.
    for (int i = 0; i < int(model::graph_type::size.inputs); ++i)
      p.input[i] = take(p.values, Samples > 1 && !inputs[i].of_loss ? bytes_of_input(i) : 0);
    return p;
  }();

 public:
  /// The values of one call at a time.
  class workspace {
   public:
    /// Throws std::bad_alloc.
    workspace() : memory_(at.values) {}
    static constexpr long bytes() { return at.values; }

   private:
    friend class network;
    detail::arena memory_;
  };

  /// Parameters are the initial ones of a trainer with this seed.
  ///
  /// throws: std::bad_alloc
  [[gnu::cold]] explicit network(std::uint64_t seed = 0) : memory_(at.weights) {
    programs::template launches<detail::program::forward>();
    Backend::for_each_set(host::best_isa_for_vectors(),
                          [this]<host::isa Set>() { this->template choose<Set>(); });
    for (detail::parameter_place const& p : stage::places.items) {
      auto const how = detail::model_tables<model>::parameters[p.index].initial;
      for (long e = 0; e < p.elements(); ++e)
        values_of(p)[e] = detail::initial_value<element>(how, seed, p, e);
    }
    parameters_changed();
  }

  /// Views of all parameters in model order, as those of a trainer; they have no gradients.
  [[gnu::cold]] std::vector<parameter_view<element>> parameters() {
    std::vector<parameter_view<element>> all;
    for (detail::parameter_place const& p : stage::places.items) {
      if (p.shared ||
          detail::is_table(detail::model_tables<model>::parameters[p.index].initial.kind))
        continue;
      all.push_back(detail::view_of_parameter<model, element>(
          p.index, {values_of(p), std::size_t(p.elements())}));
    }
    return all;
  }
  /// To be called after values of parameters() were written; load_weights and copy_weights do.
  [[gnu::cold]] void parameters_changed() {
    for (detail::tie const& t : compiled::all_ties())
      std::memcpy(values_of(t.place), values_of(t.owner),
                  std::size_t(t.place.elements()) * sizeof(element));
    for (detail::parameter_place const& p : stage::places.items) {
      if (p.transposed < 0) continue;
      element* const to = reinterpret_cast<element*>(memory_.data() + at.transposed + p.transposed);
      for (long r = 0; r < p.rows; ++r)
        for (long c = 0; c < p.columns; ++c) to[c * p.rows + r] = values_of(p)[r * p.columns + c];
    }
  }
  detail::only_process processes() const { return {}; }
  /// Bytes of the weights.
  long bytes() const { return at.weights; }
  /// As runs_on() of a trainer.
  std::string runs_on() const { return host::name_of_kernels(runs_on_); }

  /// As Trainer::forward, for any number of samples.
  ///
  /// shape: inputs[n * inputs_per_sample] -> outputs[n * outputs_per_sample] for each name
  /// throws: data_error for inputs or outputs of another size, or a token out of range
  template <Text Name = "labels", Text... More>
  void forward(input_values<0> given, output_values outputs,
               typename detail::named_values<output_values, More>::type... more,
               workspace& room) const {
    forward<Name, More...>(batch{given, {}}, outputs, more..., room);
  }
  template <Text Name = "labels", Text... More>
  void forward(batch const& b, output_values outputs,
               typename detail::named_values<output_values, More>::type... more,
               workspace& room) const {
    static_assert(
        detail::accepted<decltype(detail::diagnose_outputs<model, Name, More...>())>::value);
    detail::job j;
    j.what = detail::job::kind::infer;
    detail::take_inputs(b, std::numeric_limits<int>::max(), j);
    take<Name>(j, outputs);
    (take<More>(j, more), ...);
    for (int done = 0; done < j.batch.samples; done += Samples) run(j, done, room);
  }

 private:
  element* values_of(detail::parameter_place const& p) const {
    return reinterpret_cast<element*>(memory_.data() + (p.is_buffer ? at.buffers : at.parameters) +
                                      p.offset);
  }
  template <Text Name>
  void take(detail::job& j, output_values const& outputs) const {
    constexpr int number = detail::output_number<model, Name>;
    detail::take_output(number, detail::output_part<Name>(), outputs,
                        detail::model_tables<model>::loss_inputs[number].elements, j, *this);
  }
  template <host::isa Set>
  [[gnu::cold]] void choose() {
    [this]<int... G>(std::integer_sequence<int, G...>) {
      (this->template choose_group<Set, G>(), ...);
    }(std::make_integer_sequence<int, groups>{});
    runs_on_ = host::vectors_of(Set);
  }
  template <host::isa Set, int G>
  void choose_group() {
    if constexpr (detail::runs_in_inference<programs>(G)) {
      using source = host::source_of<compiled>;
#ifdef __x86_64__
      if constexpr (host::vectors_of(Set) == host::isa::avx512)
        kernels_[G] = &host::avx512::run<source, G>;
      else if constexpr (Set == host::isa::avx2)
        kernels_[G] = &host::avx2::run<source, G>;
      else
#endif
        kernels_[G] = &host::portable::run<source, G>;
    }
  }

  /// Runs samples [first, first + Samples) of a job, as far as they are there.
  void run(detail::job const& j, int first, workspace& room) const {
    using detail::region;
    int const left = j.batch.samples - first, n = left < Samples ? left : Samples;
    char *const weights = memory_.data(), *const mine = room.memory_.data();
    detail::region_bases b{};
    b.set(region::parameters, weights + at.parameters);
    b.set(region::buffers, weights + at.buffers);
    b.set(region::transposed, weights + at.transposed);
    b.set(region::record, mine + at.record);
    b.set(region::scratch, mine + at.scratch);
    b.set(region::buffer_sums, mine + at.sums);
    b.set(region::random,
          reinterpret_cast<char*>(const_cast<int*>(compiled::passes::streams.items)));
    for (int i = 0; i < int(model::graph_type::size.inputs); ++i)
      if (!inputs[i].of_loss) b.set(detail::input_region(i), input(j, i, first, n, mine));
    host::arguments<element> a;
    a.valid_samples = n;
    a.wants_gradient = false;
    a.workspace = mine + at.kernels;
    auto const& list = programs::template launch_list<detail::program::forward>;
    for (detail::launch const& l : list.items.items) {
      host::kernel<element> const kernel = kernels_[l.group];
      if (kernel == nullptr) continue;  // a loss
      for (int k = 0; k < l.count; ++k) a.operand[k] = b.at(list.operands.items[l.first + k].at);
      kernel(a);
    }
    for (int i = 0; i < detail::model_tables<model>::loss_inputs.size(); ++i)
      if (char* const to = static_cast<char*>(j.batch.output[i]); to != nullptr) {
        detail::loss_input const& of = detail::model_tables<model>::loss_inputs[i];
        long const each = of.elements * long(sizeof(element));
        std::memcpy(to + first * each,
                    b.at(programs::template resolve<detail::program::forward>(of.at)),
                    std::size_t(n * each));
      }
  }
  /// An input of n samples: in place, or copied and padded with zeros if there are fewer than
  /// kernels compute.
  static char* input(detail::job const& j, int i, int first, int n, char* room) {
    long const each = bytes_of_input(i) / Samples;
    char* const given =
        const_cast<char*>(static_cast<char const*>(j.batch.input[i])) + first * each;
    if constexpr (Samples > 1)
      if (n < Samples && j.batch.input[i] != nullptr) {
        char* const to = room + at.input[i];
        std::memcpy(to, given, std::size_t(n * each));
        std::memset(to + n * each, 0, std::size_t((Samples - n) * each));
        return to;
      }
    return given;
  }

  detail::arena memory_;
  detail::list<host::kernel<element>, groups> kernels_{};
  host::isa runs_on_ = host::isa::portable;
};

}  // namespace pp
