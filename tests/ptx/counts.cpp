// SPDX-License-Identifier: BSL-1.0
#include "counts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "opcodes.hpp"

namespace ptx {
namespace {

enum class space { none, global, shared, generic };

/// What an opcode's name says.
struct meaning {
  work kind = work::other;
  space where = space::none;
  bool stores = false;
  int bytes = 0;    ///< that a lane accesses
  int address = 0;  ///< the operand
  int matrices = 0, operations = 0;
};

work kind_of(std::string_view name) {
  auto const starts = [&](auto... words) { return (name.starts_with(words) || ...); };
  auto const has = [&](auto... words) { return ((name.find(words) != name.npos) || ...); };
  if (starts("mma.")) return work::product;
  if (starts("ldmatrix.")) return work::matrix_load;
  if (starts("ld.param")) return work::parameter;
  if (starts("ld.shared", "st.shared", "atom.shared")) return work::shared;
  if (starts("ld.", "st.", "atom.")) return work::global;  // also local and generic ones
  if (starts("cp.async.c") && !starts("cp.async.commit")) return work::copy;
  if (starts("bar.", "membar.", "cp.async.", "griddepcontrol.")) return work::barrier;
  if (starts("bra", "ret", "exit")) return work::branch;
  if (starts("shfl.", "vote.", "match.")) return work::exchange;
  if (starts("ex2.", "lg2.", "sin.", "cos.", "tanh.") ||
      (starts("rcp.", "sqrt.", "rsqrt.", "div.") && has(".approx")))
    return work::special;
  if (starts("div.", "rem.", "rcp.", "sqrt.")) return work::division;
  if (starts("cvt.")) return work::conversion;
  if (starts("mov.", "cvta.")) return work::move;
  if (starts("prefetch")) return work::other;
  return has(".f32", ".f64", ".f16", ".bf16") ? work::floating : work::integer;
}

/// The number after `word`, or `otherwise`.
int number_after(std::string_view name, std::string_view word, int otherwise) {
  std::size_t const at = name.find(word);
  return at == name.npos ? otherwise : std::atoi(name.data() + at + word.size());
}

meaning meaning_of(std::string const& name) {
  meaning m;
  m.kind = kind_of(name);
  if (m.kind == work::product) {
    m.operations = 2 * 16 * 8 * number_after(name, "m16n8k", 0);
  } else if (m.kind == work::matrix_load) {
    m.where = space::shared;
    m.bytes = 16;
    m.matrices = number_after(name, "m8n8.x", 1);
    m.address = m.matrices;
  } else if (m.kind == work::copy) {
    m.stores = true;
  } else if ((m.kind == work::global || m.kind == work::shared) &&
             name.find(".local") == name.npos) {
    m.where = m.kind == work::shared              ? space::shared
              : name.find(".global") != name.npos ? space::global
                                                  : space::generic;
    m.stores = name.starts_with("st.");
    m.bytes = number_after(name, ".v", 1) *
              std::atoi(name.c_str() + name.find_last_not_of("0123456789") + 1) / 8;
    m.address = int(opcodes().at(name).operands.find('a'));
  }
  return m;
}
meaning const& meaning_of(int opcode) {
  static std::vector<meaning> all;
  while (int(all.size()) < int(opcode_names().size()))
    all.push_back(meaning_of(opcode_names()[all.size()]));
  return all[std::size_t(opcode)];
}

/// What lanes access, `bytes` each.
struct access {
  std::uint64_t at[warp_size] = {};
  lanes active = 0;
  int bytes = 0;
};

access access_of(warp const& w, operand const& o, std::int64_t more, int bytes, lanes active) {
  access a;
  a.active = active;
  a.bytes = bytes;
  for (int l = 0; l < warp_size; ++l)
    a.at[l] = (o.width == 8 ? w.look<std::uint64_t>(o)[l] : w.look<std::uint32_t>(o)[l]) +
              std::uint64_t(more);
  return a;
}

void add_global(global_counts& c, access const& a) {
  std::uint64_t touched[warp_size];
  int n = 0;
  for (int l = 0; l < warp_size; ++l)
    if ((a.active >> l & 1) != 0) touched[n++] = a.at[l] / 32;
  std::sort(touched, touched + n);
  ++c.accesses;
  c.bytes += std::uint64_t(n * a.bytes);
  c.sectors += std::uint64_t(std::unique(touched, touched + n) - touched);
}

void add_shared(shared_counts& c, access const& a) {
  int const at_once = a.bytes <= 4   ? 32
                      : a.bytes == 8 ? 16
                                     : 8,
            words_each = std::max(1, a.bytes / 4);
  ++c.accesses;
  for (int first = 0; first < warp_size; first += at_once) {
    std::uint64_t words[warp_size];
    int n = 0;
    for (int l = first; l < first + at_once; ++l)
      if ((a.active >> l & 1) != 0)
        for (int k = 0; k < words_each; ++k) words[n++] = a.at[l] / 4 + std::uint64_t(k);
    if (n == 0) continue;
    c.bytes += std::uint64_t(n) / std::uint64_t(words_each) * std::uint64_t(a.bytes);
    std::sort(words, words + n);
    n = int(std::unique(words, words + n) - words);
    std::uint64_t of_bank[32] = {}, most = 0;
    for (int k = 0; k < n; ++k) most = std::max(most, ++of_bank[words[k] % 32]);
    c.wavefronts += most;
    ++c.least;
  }
}

char const* const kind_names[] = {"product",    "matrix_load", "global",    "shared",
                                  "copy",       "special",     "division",  "floating",
                                  "conversion", "integer",     "exchange",  "branch",
                                  "barrier",    "move",        "parameter", "other"};
static_assert(std::size(kind_names) == std::size_t(work::kinds));

}  // namespace

void counts::add(warp const& w, instruction const& i, lanes active) {
  meaning const& m = meaning_of(i.opcode);
  ++instructions[std::size_t(m.kind)];
  operations += std::uint64_t(m.operations);
  if (m.kind == work::copy) {
    std::uint32_t const* const bytes = w.look<std::uint32_t>(i.of[2]);
    std::uint32_t const* const given = i.count > 3 ? w.look<std::uint32_t>(i.of[3]) : bytes;
    int const each = int(bytes[__builtin_ctz(active)]);
    lanes reading = 0;
    for (int l = 0; l < warp_size; ++l)
      reading |= lanes((active >> l & 1) != 0 && given[l] > 0) << l;
    if (reading != 0) add_global(loads, access_of(w, i.of[1], i.number_2, each, reading));
    add_shared(shared, access_of(w, i.of[0], i.number, each, active));
    return;
  }
  if (m.where == space::none) return;
  access a = access_of(w, i.of[std::size_t(m.address)], i.number, m.bytes, active);
  space where = m.where;
  if (where == space::generic) {
    ++generic;
    std::uint64_t const first = a.at[__builtin_ctz(active)];
    if (first >= local_window) return;
    where = first >= shared_window ? space::shared : space::global;
  }
  if (m.matrices > 0) a.active = m.matrices == 4 ? all_lanes : (lanes(1) << (8 * m.matrices)) - 1;
  if (where == space::shared)
    add_shared(shared, a);
  else
    add_global(m.stores ? stores : loads, a);
}

count_table::count_table() {
  if (char const* const f = std::getenv("PIPE_PTX_COUNTS"); f != nullptr) file_ = f;
  if (char const* const n = std::getenv("PIPE_PTX_BLOCKS"); n != nullptr && is_asked())
    sample_.blocks = unsigned(std::atoi(n));
}

sample count_table::begin(kernel const& k, dimensions grid, dimensions threads,
                          std::size_t shared_bytes) {
  std::uint64_t const blocks = std::uint64_t(grid.x) * grid.y * grid.z;
  counts& c = rows_[k.name + '\t' + std::to_string(blocks) + '\t' +
                    std::to_string(k.shared_bytes + shared_bytes)];
  c.threads = std::uint64_t(threads.x) * threads.y * threads.z;
  c.blocks += blocks;
  sample s = sample_;
  s.into = &c;
  s.skips = samples() && c.launches > 0;
  ++c.launches;
  return s;
}

count_table::~count_table() {
  if (!is_asked()) return;
  std::FILE* const f = std::fopen(file_.c_str(), "w");
  if (f == nullptr) {
    std::fprintf(stderr, "cannot write %s\n", file_.c_str());
    return;
  }
  std::fprintf(
      f,
      "kernel\tgrid\tshared_bytes\tthreads\tlaunches\tblocks\tcounted_blocks\toperations\tgeneric");
  for (char const* const name : kind_names) std::fprintf(f, "\t%s", name);
  std::fprintf(
      f,
      "\tload_accesses\tload_bytes\tload_sectors\tstore_accesses\tstore_bytes\tstore_sectors"
      "\tshared_accesses\tshared_access_bytes\tshared_wavefronts\tshared_least\n");
  auto const number = [f](std::uint64_t n) {
    std::fprintf(f, "\t%llu", static_cast<unsigned long long>(n));
  };
  for (auto const& [row, c] : rows_) {
    std::fprintf(f, "%s", row.c_str());
    for (std::uint64_t const n :
         {c.threads, c.launches, c.blocks, c.counted_blocks, c.operations, c.generic})
      number(n);
    for (std::uint64_t const n : c.instructions) number(n);
    for (global_counts const& g : {c.loads, c.stores})
      number(g.accesses), number(g.bytes), number(g.sectors);
    number(c.shared.accesses), number(c.shared.bytes), number(c.shared.wavefronts),
        number(c.shared.least);
    std::fprintf(f, "\n");
  }
  std::fclose(f);
}

}  // namespace ptx
