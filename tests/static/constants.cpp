// SPDX-License-Identifier: BSL-1.0
//
// What a user's types say while the program compiles, and one of it is not constexpr: that one is
// named. Compiling is passing.
#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

// Of layers: of layer 1, or of all of a model.
template <class Found, wrong::diagnosis What, class... Words>
constexpr bool says = std::is_same_v<Found, wrong::Use<What, Words...>> ||
                      std::is_same_v<Found, wrong::Layer<1, What, Words...>>;
template <class Found, class O, wrong::member Which>
constexpr bool names_function =
    says<Found, wrong::function_must_be_constexpr, O, wrong::Function<Which>>;
template <class Found, class O, wrong::member Which>
constexpr bool names_value = says<Found, wrong::value_must_be_constexpr, O, wrong::Value<Which>>;

// ---- layers ----

template <class L, class Model = lowering<Input<3>, Linear<4>, L, Linear<2>, MSE>>
using said_of_layer =
    typename decltype(detail::diagnose<Model::fault, typename Model::leaves>())::type;

struct Scale {
  static constexpr int parameters = 1;
  static constexpr sample_shape result(sample_shape in) { return in; }
  static constexpr custom::parameter parameter(int, sample_shape in) { return {1, in.columns()}; }
  static constexpr long saved_per_sample(sample_shape in) { return in.elements(); }
  static constexpr long flops(sample_shape in) { return in.elements(); }
  template <class T>
  static void forward(custom::forward<T> const&);
  template <class T>
  static void input_gradient(custom::input_gradient<T> const&);
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const&);
};
struct late_result : Scale {
  static sample_shape result(sample_shape in) { return in; }
};
struct late_parameter : Scale {
  static custom::parameter parameter(int, sample_shape in) { return {1, in.columns()}; }
};
struct late_saved : Scale {
  static long saved_per_sample(sample_shape in) { return in.elements(); }
};
struct late_flops : Scale {
  static long flops(sample_shape in) { return in.elements(); }
};
struct late_parameters : Scale {
  static inline int parameters = 1;
};
struct fails : Scale {  // for the shape that it gets
  static constexpr custom::parameter parameter(int, sample_shape in) {
    return in.columns() == 4 ? throw "no" : custom::parameter{1, in.columns()};
  }
};
static_assert(std::is_same_v<said_of_layer<Custom<Scale>>, detail::nothing_wrong>);
static_assert(
    names_function<said_of_layer<Custom<late_result>>, Custom<late_result>, wrong::member::result>);
static_assert(names_function<said_of_layer<Custom<late_parameter>>, Custom<late_parameter>,
                             wrong::member::parameter>);
static_assert(names_function<said_of_layer<Custom<late_saved>>, Custom<late_saved>,
                             wrong::member::saved_per_sample>);
static_assert(
    names_function<said_of_layer<Custom<late_flops>>, Custom<late_flops>, wrong::member::flops>);
static_assert(names_value<said_of_layer<Custom<late_parameters>>, Custom<late_parameters>,
                          wrong::member::parameters>);
static_assert(names_function<said_of_layer<Custom<fails>>, Custom<fails>, wrong::member::result>);

struct described {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    b.set(b.current());
  }
};
struct late_description {
  template <class Builder>
  static void describe(Builder& b) {
    b.set(b.current());
  }
};
static_assert(std::is_same_v<said_of_layer<described>, detail::nothing_wrong>);
static_assert(
    names_function<said_of_layer<late_description>, late_description, wrong::member::describe>);
static_assert(names_function<said_of_layer<Seq<described, Residual<late_description>>>,
                             late_description, wrong::member::describe>);
static_assert(names_function<said_of_layer<Seq<described, Custom<late_flops>>>, Custom<late_flops>,
                             wrong::member::flops>);
static_assert(names_function<said_of_layer<Seq<Custom<Scale>, late_description>>, late_description,
                             wrong::member::describe>);

struct late_formula : Activation<late_formula> {
  static inline bool derivative_reads_output = false;
  template <class T>
  static T forward(T x);
  template <class T>
  static T derivative(T x);
};
static_assert(
    names_value<said_of_layer<late_formula>, late_formula, wrong::member::derivative_reads_output>);

struct Small {
  static constexpr detail::initializer of(int inputs, int) {
    return {distribution::normal, 1.0f / float(inputs)};
  }
};
struct late_recipe {
  static detail::initializer of(int, int) { return {distribution::normal, 1}; }
};
struct of_many {  // not for few
  static constexpr detail::initializer of(int inputs, int) {
    return inputs < 3 ? throw "no" : detail::initializer{distribution::normal, 1};
  }
};
static_assert(std::is_same_v<said_of_layer<Linear<4, Init<Small>>>, detail::nothing_wrong>);
static_assert(std::is_same_v<said_of_layer<Linear<4, Init<of_many>>>, detail::nothing_wrong>);
static_assert(names_function<said_of_layer<Linear<4, Init<late_recipe>>>, Init<late_recipe>,
                             wrong::member::of>);
static_assert(names_function<said_of_layer<Group<Init<Small, late_recipe>, Linear<4>>>,
                             Init<Small, late_recipe>, wrong::member::of>);

// ---- schedules ----

template <class... O>
using said = typename decltype(diagnose_options<option_set<O...>>())::type;

struct Order : OneFOneB {
  static constexpr char const* refuses(int, int) { return nullptr; }
  static constexpr bool fits_a_constant(int, int) { return true; }
  static constexpr bool updates = false;
};
struct late_name : Order {
  static inline char const* name = "late";
};
struct late_where : Order {
  static inline schedules::placement where = schedules::placement::straight;
};
struct late_chunks : Order {
  static inline int chunks_per_rank = 1;
};
struct late_splits : Order {
  static inline bool splits_backward = false;
};
struct late_trains : Order {
  static inline bool trains = true;
};
struct late_updates : Order {
  static inline bool updates = false;
};
struct late_refuses : Order {
  static char const* refuses(int, int) { return nullptr; }
};
struct late_fits : Order {
  static bool fits_a_constant(int, int) { return true; }
};
static_assert(std::is_same_v<said<Order>, detail::nothing_wrong>);
static_assert(names_value<said<late_name>, late_name, wrong::member::name>);
static_assert(names_value<said<late_where>, late_where, wrong::member::where>);
static_assert(names_value<said<late_chunks>, late_chunks, wrong::member::chunks_per_rank>);
static_assert(names_value<said<late_splits>, late_splits, wrong::member::splits_backward>);
static_assert(names_value<said<late_trains>, late_trains, wrong::member::trains>);
static_assert(names_value<said<late_updates>, late_updates, wrong::member::updates>);
static_assert(names_function<said<late_refuses>, late_refuses, wrong::member::refuses>);
static_assert(names_function<said<late_fits>, late_fits, wrong::member::fits_a_constant>);

// ---- optimizers ----

struct late_states : SGD {
  static inline int states = 1;
};
struct late_title : SGD {
  static inline char const* name = "late";
};
struct late_takes : Muon {
  static bool takes(custom::tensor_kind) { return true; }
};
struct late_state_elements : Muon {
  static long state_elements(custom::tensor_shape const&) { return 0; }
};
struct late_workspace : Muon {
  template <class Backend, class T>
  static long workspace_elements(custom::tensor_shape const&) {
    return 0;
  }
};
static_assert((optimizer<SGD> && optimizer<Adam> && optimizer<AdamW> && optimizer<Adamax> &&
               optimizer<RMSprop> && optimizer<CenteredRMSprop> && optimizer<Adagrad> &&
               optimizer<Lion> && optimizer<LAMB> && optimizer<Adafactor> && optimizer<Muon>));
static_assert(std::is_same_v<said<Muon>, detail::nothing_wrong> &&
              std::is_same_v<said<LAMB, FP64>, detail::nothing_wrong> &&
              std::is_same_v<said<Adafactor>, detail::nothing_wrong>);
static_assert(names_value<said<late_states>, late_states, wrong::member::states>);
static_assert(names_value<said<late_title>, late_title, wrong::member::name>);
static_assert(names_function<said<late_takes>, late_takes, wrong::member::takes>);
static_assert(
    names_function<said<late_state_elements>, late_state_elements, wrong::member::state_elements>);
static_assert(
    names_function<said<late_workspace>, late_workspace, wrong::member::workspace_elements>);

// ---- recompute policies ----

// [recompute]
struct Norms {  // the results of norms are made again, in every micro-batch
  static constexpr bool recomputes = true, keeps_last = false;
  static constexpr bool drops(op_kind kind) { return kind == op_kind::norm; }
};
// [/recompute]
struct late_drops : Norms {
  static bool drops(op_kind) { return true; }
};
struct drops_of_some : Norms {  // not of all
  static constexpr bool drops(op_kind kind) { return kind == op_kind::gate ? throw "no" : true; }
};
struct late_keeps_last : Norms {
  static inline bool keeps_last = true;
};
struct late_recomputes : Norms {
  static inline bool recomputes = true;
};
static_assert(std::is_same_v<said<Norms>, detail::nothing_wrong>);
static_assert(names_function<said<late_drops>, late_drops, wrong::member::drops>);
static_assert(names_function<said<drops_of_some>, drops_of_some, wrong::member::drops>);
static_assert(names_value<said<late_keeps_last>, late_keeps_last, wrong::member::keeps_last>);
static_assert(names_value<said<late_recomputes>, late_recomputes, wrong::member::recomputes>);
struct only_drops {
  static constexpr bool drops(op_kind) { return true; }
};
struct only_recomputes {
  static constexpr bool recomputes = true;
};
template <wrong::member Lacks, class O>
inline constexpr bool lacks_of_recompute =
    says<said<O>, wrong::recompute_is_incomplete, O, wrong::Missing<Lacks>>;
static_assert(lacks_of_recompute<wrong::member::recomputes, only_drops> &&
              lacks_of_recompute<wrong::member::drops, only_recomputes>);

// ---- precisions ----

struct late_precision : FP32 {
  static inline char const* name = "late";
};
struct late_scale : FP32 {
  static inline bool scales_loss = false;
};
struct late_product : FP32 {
  static inline dtype product = dtype::f32;
};
struct of_integers : FP32 {
  using element = int;
};
struct of_longs : FP32 {
  using value = long;
};
template <wrong::member Lacks, class O>
inline constexpr bool lacks_of_precision =
    says<said<O>, wrong::precision_is_incomplete, O, wrong::Missing<Lacks>>;
static_assert(names_value<said<late_precision>, late_precision, wrong::member::name>);
static_assert(names_value<said<late_scale>, late_scale, wrong::member::scales_loss>);
static_assert(names_value<said<late_product>, late_product, wrong::member::product>);
static_assert(lacks_of_precision<wrong::member::element, of_integers> &&
              lacks_of_precision<wrong::member::value, of_longs> &&
              lacks_of_precision<wrong::member::name, number_types<float, float, dtype::f32>>);

// ---- transports ----

template <class T>
struct Over {
  using transport = T;
};
struct late_copies : in_process {
  using in_process::in_process;
  static inline bool copies = false;
};
struct says_nothing {};
struct of_no_ranks : in_process {};
struct waits_in_vain : in_process {
  using in_process::in_process;
  void wait(int, transports::milestone, int, transports::failure_flag const&);
};
template <wrong::member Lacks, class T>
inline constexpr bool lacks_of_transport =
    says<said<Over<T>>, wrong::transport_is_incomplete, Over<T>, wrong::Missing<Lacks>>;
static_assert(std::is_same_v<said<Over<in_process>>, detail::nothing_wrong>);
static_assert(names_value<said<Over<late_copies>>, Over<late_copies>, wrong::member::copies>);
static_assert(lacks_of_transport<wrong::member::copies, says_nothing> &&
              lacks_of_transport<wrong::member::constructor, of_no_ranks> &&
              lacks_of_transport<wrong::member::wait, waits_in_vain>);

// ---- partition policies ----

// [partition]
struct Halves {  // stage s begins with layer cuts[s]; costs[layer] is not used here
  static constexpr void cut(auto const& costs, int layers, int stages, auto& cuts) {
    for (int s = 0; s <= stages; ++s) cuts[s] = s * layers / stages;
    (void)costs;
  }
};
// [/partition]
struct late_cut {
  static void cut(auto const& costs, int layers, int stages, auto& cuts) {
    ByCount::cut(costs, layers, stages, cuts);
  }
};
struct cut_beyond_the_last : Halves {
  static constexpr void cut(auto const& costs, int layers, int stages, auto& cuts) {
    Halves::cut(costs, layers, stages + 1, cuts);
  }
};
struct cut_by_nothing : Halves {
  static constexpr void cut(auto const&, int layers, int stages, auto& cuts) {
    for (int s = 0; s <= stages; ++s) cuts[s] = layers - s;
  }
};
struct cut_of_two {
  static constexpr void cut(auto const&, auto&) {}
};
struct SmallNet : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
template <class... O>
using said_of_cuts =
    typename decltype(diagnose_pipeline<SmallNet,
                                        option_set<PortableHost, Stages<2>, O...>>())::type;
static_assert(std::is_same_v<said_of_cuts<Halves>, detail::nothing_wrong>);
static_assert(names_function<said_of_cuts<late_cut>, late_cut, wrong::member::cut>);
static_assert(
    names_function<said_of_cuts<cut_beyond_the_last>, cut_beyond_the_last, wrong::member::cut>);
static_assert(says<said_of_cuts<cut_by_nothing>, wrong::cuts_must_ascend_and_make_as_many_stages,
                   cut_by_nothing, Stages<2>, wrong::Layers<2>>);
static_assert(says<said<cut_of_two>, wrong::partition_is_incomplete, cut_of_two,
                   wrong::Missing<wrong::member::cut>>);

// ---- the list of families ----

// An option of each family is found in any order, and a missing one has its default.
using mixed = option_set<AdamW, HostThreads<2>, Stages<3>, Norms, PortableHost>;
static_assert(std::is_same_v<mixed::get<option_family::optimizer>, AdamW> &&
              std::is_same_v<mixed::get<option_family::threads>, HostThreads<2>> &&
              std::is_same_v<mixed::get<option_family::stages>, Stages<3>> &&
              std::is_same_v<mixed::get<option_family::recompute>, Norms> &&
              std::is_same_v<mixed::get<option_family::backend>, PortableHost> &&
              std::is_same_v<mixed::get<option_family::schedule>, OneFOneB> &&
              std::is_same_v<mixed::get<option_family::memory_limit>, MemoryLimit<0>>);
// Each default is of its own family, and of no other.
template <class... Family>
constexpr bool defaults_are_of_their_family(detail::layers<Family...> all) {
  return (
      (detail::find_family<typename Family::fallback>(all) == detail::leaf_index<Family>(all)) &&
      ...);
}
static_assert(defaults_are_of_their_family(option_families{}));

// ---- members ----

// A trainer may be a member with its settings, for which g++ 12 asks whether all of them throw.
struct owner {
  Pipeline<SmallNet, PortableHost, AdamW> trainer{{.seed = 3}};
  bool is_there;
  owner() { is_there = true; }
};
static_assert(std::is_default_constructible_v<owner>);

}  // namespace
