// SPDX-License-Identifier: BSL-1.0
//
// A language model that reads one token after the other. Trainer::forward computes the whole
// context for every token; a decoder keeps the keys and values of the positions that it has read,
// and computes only the new ones.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/backend/host/arithmetic.hpp>
#include <pipe/backend/host/backend.hpp>
#include <pipe/backend/host/narrow_matrix.hpp>
#include <pipe/backend/host/threads.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/graph/position_tables.hpp>
#include <pipe/infer/decodable.hpp>
#include <pipe/infer/narrow_model.hpp>
#include <pipe/infer/new_rows.hpp>
#include <pipe/runtime/host/core/arena.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp {

namespace detail {

/// Selects the kernels of a decoder for the best instruction set of a backend; those of `Host` for
/// a backend without any.
///
/// shape: functions[Program::distinct.count], in the order of the formulas
template <class Program, class T, host::isa Set>
void choose_rows(host::row_kernels<T>& k, host::row_function<T>* functions) {
  constexpr auto all = std::make_index_sequence<std::size_t(Program::distinct.count)>{};
#ifdef __x86_64__
  if constexpr (host::vectors_of(Set) == host::isa::avx512)
    host::avx512::fill_rows<Program>(k, functions, all);
  else if constexpr (Set == host::isa::avx2)
    host::avx2::fill_rows<Program>(k, functions, all);
  else
#endif
    host::portable::fill_rows<Program>(k, functions, all);
  k.runs_on = host::vectors_of(Set);
}
/// Selects the kernels of the best set that this CPU has.
template <class Program, class T, host::isa... Sets>
void choose_rows(HostKernels<Sets...> host, host::row_kernels<T>& k,
                 host::row_function<T>* functions) {
  host.for_each_set(host::best_isa_for_vectors(),
                    [&]<host::isa Set>() { choose_rows<Program, T, Set>(k, functions); });
}
template <class Program, class T, class Backend>
void choose_rows(Backend, host::row_kernels<T>& k, host::row_function<T>* functions) {
  choose_rows<Program, T>(Host{}, k, functions);
}

/// The settings of a decoder.
struct decoder_settings {
  /// Threads, with the calling one, that divide the work of a prompt or a token; 0: as many as a
  /// rank of the trainer has (HostThreads), and one without a trainer.
  int threads = 0;
  /// The numbers of the matrices of products and of embedding tables.
  decoder_weights weights = decoder_weights::as_trained;
  /// The inputs that share a scale of decoder_weights::int8.
  int group = 64;
  /// Texts that the decoder keeps; text 0 is that of functions without a text.
  int texts = 1;
  /// Whether keys and values of earlier positions are kept rounded to bfloat16.
  bool keys_in_bf16 = false;
};

/// The threads of a rank of a trainer.
template <class Trainer>
constexpr int threads_of() {
  if constexpr (requires { Trainer::plan.threads; })
    return Trainer::plan.threads;
  else
    return 1;
}
/// The number of threads that settings ask for.
///
/// throws: data_error if it is out of range
inline int checked_threads(decoder_settings const& s, int usual) {
  if (s.threads < 0 || s.threads > most_threads)
    throw_error<data_error>(
        {"decoder: threads: ", s.threads, " is not in [0, ", most_threads, "]"});
  return s.threads == 0 ? usual : s.threads;
}

/// The number of texts that settings ask for.
///
/// throws: data_error if it is out of range
template <class T>
int checked_texts(decoder_settings const& s) {
  if (s.texts < 1 || s.texts > new_rows<T>::most_rows)
    throw_error<data_error>(
        {"decoder: texts: ", s.texts, " is not in [1, ", new_rows<T>::most_rows, "]"});
  return s.texts;
}

/// Whether settings ask for keys and values in bfloat16.
///
/// throws: data_error if the decoder's numbers are no floats
template <class T>
bool checked_keys(decoder_settings const& s) {
  if (s.keys_in_bf16 && !std::is_same_v<T, float>)
    throw_error<data_error>({"decoder: keys_in_bf16: a decoder of double keeps them in double"});
  return s.keys_in_bf16;
}

/// The storage of matrices that settings ask for.
///
/// throws: data_error if it is out of range, or the decoder's numbers are no floats
template <class T>
host::weight_format checked_weights(decoder_settings const& s) {
  constexpr int most = 1 << 20;
  if (s.weights == decoder_weights::as_trained) return {};
  if (!std::is_same_v<T, float>)
    throw_error<data_error>({"decoder: weights: a decoder of double keeps them as trained"});
  if (s.group < 1 || s.group > most)
    throw_error<data_error>({"decoder: group: ", s.group, " is not in [1, ", most, "]"});
  return {s.weights, s.weights == decoder_weights::int8 ? s.group : 0};
}

/// throws: data_error for the first token that is not in [0, vocabulary)
inline void check_tokens(std::span<int const> tokens, int vocabulary) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      throw_error<data_error>(
          {"token ", tokens[i], " at position ", i, " is not in [0, ", vocabulary, ")"});
}

}  // namespace detail

/// Reads tokens and returns the logits of the next one. The parameters are read from the trainer's
/// memory, so the trainer must outlive the decoder; after a training step, or a change of
/// parameters, start again with rewind(0). If the trainer's ranks are in several processes, all of
/// them construct a decoder, which gets a copy of all parameters as they are then; it is used in
/// any of them.
///
/// With `.weights` other than decoder_weights::as_trained, the decoder has a copy of all parameters
/// as they are at construction, with rounded matrices, and the trainer need not outlive it.
///
/// With `.keys_in_bf16`, keys and values of positions are rounded to bfloat16 when they are kept.
///
/// With `.texts` more than 1, it keeps several texts. A copy of a text shares the keys and values
/// of its positions, and read_each() reads a token of each of many texts in little more time than
/// one, as the weights are read once.
///
/// One thread at a time calls a decoder; several decoders may work at once.
///
/// law: the logits after n tokens are those of the trainer's forward() on them, bit for bit on the
///      host, however the tokens were divided among calls, for any number of threads
/// law: the logits of a text are those of the text alone, bit for bit
/// law: with rounded matrices, they are those of a trainer that has the rounded numbers; with
///      rounded keys and values they do not depend on how tokens were divided, or on threads
/// law: a token costs the work of its position and of the attention to earlier positions
template <class Trainer>
class decoder {
  using Given = typename Trainer::model;
  static_assert(decltype(detail::diagnosed(detail::diagnose_decoding(detail::word<Given>{})))::ok);
  /// The model that is decoded; a stand-in if the trainer's model has been refused one line above.
  using M = std::conditional_t<detail::is_decodable<Given>(), Given, detail::smallest_decodable>;

 public:
  using element = typename Trainer::element;
  static constexpr int context = int(M::graph.inputs[0].form.elements()),
                       vocabulary = M::graph.inputs[0].vocabulary;

  /// Allocates all memory of the decoder, starts its threads, and computes the constant tables of
  /// the model.
  ///
  /// throws: data_error for a setting out of range, or a weight that is not finite and is to be
  ///         rounded; error if a thread cannot be started
  [[gnu::cold]] explicit decoder(Trainer& trainer, detail::decoder_settings const& settings = {})
      : rows_(model_of(trainer, detail::checked_weights<element>(settings)),
              detail::checked_threads(settings, detail::threads_of<Trainer>()),
              detail::checked_texts<element>(settings), detail::checked_keys<element>(settings)),
        positions_(settings.texts) {}

  /// The number of texts.
  int texts() const { return int(positions_.size()); }
  /// The number of tokens read of a text.
  int position(int text = 0) const { return positions_[checked(text)]; }
  /// Forgets all but the first `position` tokens of a text.
  ///
  /// throws: data_error if position is not in [0, position(text)]
  void rewind(int position) { rewind(0, position); }
  void rewind(int text, int position) {
    if (position < 0 || position > this->position(text))
      detail::throw_error<data_error>(
          {"rewind: position ", position, " is not in [0, ", positions_[text], "]"});
    rows_.pages().keep_first(text, position);
    positions_[text] = position;
  }
  /// Makes text `to` a copy of text `from`. Both share the memory of what they have in common, in
  /// pages of 128 positions.
  void copy_text(int from, int to) {
    if (checked(from) == checked(to)) return;
    rows_.pages().share(from, to);
    positions_[to] = positions_[from];
  }

  /// Reads further tokens of a text. Returns the logits of the next one, valid until the next call.
  ///
  /// shape:  tokens[n], n >= 1 -> logits[vocabulary]
  /// throws: data_error if there are none, one is not in the vocabulary, or the context is too
  ///         short; nothing is read then
  std::span<element const> read(std::span<int const> tokens) { return read(0, tokens); }
  std::span<element const> read(int text, std::span<int const> tokens) {
    if (tokens.empty())
      detail::throw_error<data_error>({"decoder: expected at least one token, got none"});
    check_room(text, tokens.size());
    detail::check_tokens(tokens, vocabulary);
    int at = positions_[text];
    for (;;) {
      int const n = rows_.block_of(host::extent(tokens.size()));
      detail::new_positions const block{text, at, n};
      auto const logits =
          rows_.run(tokens.first(std::size_t(n)), {&block, 1}, std::size_t(n) == tokens.size());
      at += n;
      tokens = tokens.subspan(std::size_t(n));
      if (!tokens.empty()) continue;
      positions_[text] = at;
      return logits;
    }
  }
  /// The same for one token.
  std::span<element const> read(int token) { return read(std::span(&token, 1)); }

  /// Reads a token of each text, but none of a text whose token is -1. Returns the logits of the
  /// next tokens, valid until the next call.
  ///
  /// shape:  tokens[texts()] -> logits[n, vocabulary], n: the tokens that are not -1, in their
  /// order throws: data_error if all are -1, one is not in the vocabulary, or a context is full;
  /// nothing
  ///         is read then
  std::span<element const> read_each(std::span<int const> tokens) {
    if (tokens.size() != std::size_t(texts()))
      detail::throw_error<data_error>(
          {"decoder: expected a token for each of ", texts(), " texts, got ", tokens.size()});
    std::vector<int> given;
    std::vector<detail::new_positions> parts;
    for (int text = 0; text < texts(); ++text)
      if (int const token = tokens[std::size_t(text)]; token != -1) {
        check_room(text, 1);
        given.push_back(token);
        parts.push_back({text, positions_[text], 1, int(parts.size())});
      }
    if (given.empty())
      detail::throw_error<data_error>({"decoder: expected at least one token, got none"});
    detail::check_tokens(given, vocabulary);
    auto const logits = rows_.run(given, parts, true);
    for (auto const& p : parts) ++positions_[p.text];
    return logits;
  }

  /// Reads further tokens of each text, but none of a text whose list is empty, such as prompts of
  /// several lengths: the weights are read once for all of them, or for every 256 tokens. Returns
  /// the logits of the next tokens, valid until the next call.
  ///
  /// shape:  tokens[texts()][any number] -> logits[n, vocabulary], n: the lists that are not empty,
  ///         in their order
  /// throws: data_error if all are empty, a token is not in the vocabulary, or a context is too
  ///         short; nothing is read then
  std::span<element const> read_each(std::span<std::vector<int> const> tokens) {
    if (tokens.size() != std::size_t(texts()))
      detail::throw_error<data_error>(
          {"decoder: expected tokens for each of ", texts(), " texts, got ", tokens.size()});
    std::vector<int> last;  // of each text, whose logits are returned
    for (int text = 0; text < texts(); ++text) {
      std::vector<int> const& of = tokens[std::size_t(text)];
      detail::check_tokens(of, vocabulary);
      if (!of.empty()) check_room(text, of.size());
      last.push_back(of.empty() ? -1 : of.back());
    }
    std::vector<int> together;
    std::vector<detail::new_positions> parts;
    auto const run = [&] {
      if (!together.empty()) rows_.run(together, parts, false);
      for (auto const& p : parts) positions_[p.text] += p.count;
      together.clear();
      parts.clear();
    };
    for (int text = 0; text < texts(); ++text) {
      std::span<int const> rest = tokens[std::size_t(text)];
      while (rest.size() > 1) {
        std::size_t const room = std::size_t(rows_.most_tokens()) - together.size(),
                          n = rest.size() - 1 < room ? rest.size() - 1 : room;
        parts.push_back({text, positions_[text], int(n), int(together.size())});
        together.insert(together.end(), rest.begin(), rest.begin() + long(n));
        rest = rest.subspan(n);
        if (n == room) run();
      }
    }
    run();
    return read_each(std::span<int const>(last));
  }

  /// Bytes allocated: mostly the keys and values of a whole context, and rounded matrices; in one
  /// process trained parameters are not copied otherwise.
  long bytes() const {
    long sum = rows_.bytes() + narrow_.bytes();
    for (auto const& table : tables_) sum += table.size() * long(sizeof(element));
    return sum;
  }
  /// The number of threads, with the calling one.
  int threads() const { return rows_.threads(); }
  /// As runs_on() of a trainer.
  std::string runs_on() const { return host::name_of_kernels(rows_.runs_on()); }

 private:
  int checked(int text) const {
    if (text < 0 || text >= texts())
      detail::throw_error<data_error>({"decoder: text ", text, " is not in [0, ", texts(), ")"});
    return text;
  }
  /// throws: data_error if the tokens do not fit behind those of a text
  void check_room(int text, std::size_t tokens) const {
    if (int const at = position(text); tokens > std::size_t(context - at))
      detail::throw_error<data_error>({"decoder: expected at most ", context - at, " tokens after ",
                                       at, " of a context of ", context, ", got ", tokens});
  }

  using program = detail::row_program<M, element>;

  /// The model with pointers into the trainer's parameters, or copies of them. A tied parameter is
  /// the one that owns its memory; constant tables are computed here.
  [[gnu::cold]] detail::new_rows_model<element> model_of(Trainer& trainer,
                                                         host::weight_format format) {
    auto const& g = M::graph;
    detail::new_rows_model<element> m;
    // Without the last op, the loss.
    m.ops = {g.ops, std::size_t(g.size.ops - 1)};
    m.values = {g.values, std::size_t(g.size.values)};
    m.output = g.loss().in[0];
    m.context = context;
    m.vocabulary = vocabulary;

    detail::heap_array<host::row_function<element>> distinct(program::distinct.count);
    detail::choose_rows<program, element>(typename Trainer::compiled::backend{}, m.kernels,
                                          distinct.begin());
    m.functions = detail::heap_array<host::row_function<element>>(long(m.ops.size()));
    for (long i = 0; i < m.functions.size(); ++i)
      if (host::row_formula const f = program::formula_of(g.ops[i]); f.kind != op_kind::none)
        m.functions[i] = distinct[program::distinct.find(f)];

    m.masks = masks_of(typename M::leaves{});

    bool const is_narrow = format.type != decoder_weights::as_trained;
    detail::narrow_model const narrow{m.ops, {g.parameters, std::size_t(g.size.parameters)}};
    m.matrices = narrow.matrices(is_narrow ? format : host::weight_format{}, narrow_);

    m.weights = detail::heap_array<element const*>(g.size.parameters);
    if constexpr (std::is_same_v<M, Given>) {
      auto const all = trainer.parameters();
      bool everything_is_here = true;
      for (auto const& p : all) everything_is_here &= !p.values.empty();
      everything_is_here = trainer.processes().agree(everything_is_here);
      for (auto const& p : all) {
        if (is_narrow) {
          std::vector<element> room;
          auto const values = trainer.processes().values_of(p, room);
          if constexpr (std::is_same_v<element, float>)
            narrow.round(p.index, values.data(), p.name, m.matrices);
          if (narrow.has_matrices_only(p.index)) continue;
        }
        m.weights[p.index] =
            everything_is_here && !is_narrow ? p.values.data() : copy_of(trainer, p);
      }
      for (int i = 0; i < g.size.parameters; ++i) {
        if (detail::is_table(g.parameters[i].initial.kind)) m.weights[i] = table(i, m.weights);
        if (g.parameters[i].tied_to >= 0) m.weights[i] = m.weights[g.parameters[i].tied_to];
      }
    }
    return m;
  }

  /// The masks of all layer types.
  template <class... L>
  [[gnu::cold]] static detail::heap_array<detail::mask_function> masks_of(detail::layers<L...>) {
    detail::heap_array<detail::mask_function> all(long(sizeof...(L)));
    long i = 0;
    ((all[i++] = detail::mask_of_layer<L>()), ...);
    return all;
  }

  /// A copy of a parameter that any process has. All processes make it, in turn.
  ///
  /// shape: [rows, columns], as in the trainer
  element const* copy_of(Trainer& trainer, parameter_view<element> const& p) {
    std::vector<element> room;
    auto const values = trainer.processes().values_of(p, room);
    detail::heap_array<element>& all = tables_.emplace_back(long(values.size()));
    for (long i = 0; i < all.size(); ++i) all[i] = values[std::size_t(i)];
    return all.begin();
  }
  /// Constant table i; equal tables share their memory.
  ///
  /// needs: before[k] holds the table of every such parameter k < i
  element const* table(int i, detail::heap_array<element const*> const& before) {
    detail::parameter const& mine = M::graph.parameters[i];
    for (int k = 0; k < i; ++k) {
      detail::parameter const& p = M::graph.parameters[k];
      if (p.initial.kind == mine.initial.kind && p.initial.scale == mine.initial.scale &&
          p.form == mine.form)
        return before[k];
    }
    detail::heap_array<element>& all = tables_.emplace_back(mine.elements());
    for (long e = 0; e < all.size(); ++e)
      all[e] = element(detail::table_entry(mine.initial, mine.columns(), e / mine.columns(),
                                           int(e % mine.columns())));
    return all.begin();
  }

  // Constant tables, and copies of parameters. Declared, as narrow_, before rows_, whose
  // initialisation by model_of() fills both.
  std::vector<detail::heap_array<element>> tables_;
  detail::arena narrow_;  // rounded matrices
  detail::new_rows<element> rows_;
  detail::heap_array<int> positions_;  // by text
};
template <class Trainer>
decoder(Trainer&) -> decoder<Trainer>;
template <class Trainer>
decoder(Trainer&, detail::decoder_settings) -> decoder<Trainer>;

}  // namespace pp
