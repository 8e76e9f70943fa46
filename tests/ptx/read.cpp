// SPDX-License-Identifier: BSL-1.0
//
// Reads PTX as nvcc writes it: one directive, label or instruction after the other. What it does
// not know is an error.
#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <memory>
#include <string_view>

#include "joins.hpp"
#include "opcodes.hpp"
#include "program.hpp"

namespace ptx {

std::map<std::string, opcode> const& opcodes() {
  static opcode_table const table = [] {
    opcode_table t;
    add_integers(t);
    add_floats(t);
    add_conversions(t);
    add_memory(t);
    add_warp(t);
    add_hopper(t);
    return t;
  }();
  return table;
}

namespace {

std::vector<std::string>& names() {
  static std::vector<std::string> all;
  return all;
}

/// A statement of the text: up to `;`, `{`, `}` or after the `:` of a label.
struct statement {
  std::string text;
  int line = 0;
};

std::string trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  std::string out;
  for (char const c : s)
    if (!std::isspace(static_cast<unsigned char>(c)))
      out += c;
    else if (out.back() != ' ')
      out += ' ';
  return out;
}

std::vector<statement> split(char const* text) {
  std::vector<statement> all;
  std::string now;
  int line = 1, begun = 1;
  bool is_blank = true;  // what has been read of a statement
  auto const end = [&](bool with = false, char c = 0) {
    if (with) now += c;
    if (std::string const s = trimmed(now); !s.empty()) all.push_back({s, begun});
    now.clear();
    is_blank = true;
  };
  for (char const* p = text; *p != 0; ++p) {
    if (p[0] == '/' && p[1] == '/') {
      while (p[1] != 0 && p[1] != '\n') ++p;
      continue;
    }
    if (*p == '\n') {
      ++line;
      std::string const s =
          trimmed(now);  // directives of a file and of a kernel end with their line
      if (s.starts_with(".version") || s.starts_with(".target") || s.starts_with(".address_size") ||
          s.starts_with(".maxntid") || s.starts_with(".minnctapersm") ||
          s.starts_with(".reqntid") || s.starts_with(".maxnreg") ||
          (s.find(".entry") != std::string::npos && s.back() == ')'))
        end();
    }
    if (is_blank) begun = line;
    bool const is_scope = (*p == '{' || *p == '}') && [&] {  // and not a list of operands
      std::string const s = trimmed(now);
      return s.empty() || s.back() == ')' || s.starts_with(".entry") || s.starts_with(".visible");
    }();
    if (is_scope) {
      end();
      now = *p;
      begun = line;
      end();
    } else if (*p == ';') {
      end();
    } else if (*p == ':' && p[1] != ':' && (p == text || p[-1] != ':')) {
      end(true, ':');
    } else {
      now += *p;
      is_blank = is_blank && std::isspace(static_cast<unsigned char>(*p));
    }
  }
  end();
  return all;
}

std::vector<std::string> split_operands(std::string const& s) {
  std::vector<std::string> all;
  std::string now;
  int depth = 0;
  for (char const c : s) {
    depth += c == '{' || c == '[' || c == '(';
    depth -= c == '}' || c == ']' || c == ')';
    if (c == ',' && depth == 0) {
      all.push_back(trimmed(now));
      now.clear();
    } else {
      now += c;
    }
  }
  if (!trimmed(now).empty()) all.push_back(trimmed(now));
  return all;
}

std::size_t width_of(std::string const& type) {
  if (type == ".pred") return 0;
  for (std::size_t i = 0; i < type.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(type[i])))
      return std::size_t(std::stoul(type.substr(i))) / 8;
  throw error("no type: " + type);
}

class reader {
 public:
  std::map<std::string, kernel> kernels;

  void read(statement const& s) {
    try {
      line_ = s.line;
      take(s.text);
    } catch (error const& e) {
      fail(e.what(), s);
    } catch (std::logic_error const&) {  // of std::stoi and its like
      fail("not understood", s);
    }
  }

 private:
  [[noreturn]] static void fail(std::string const& what, statement const& s) {
    throw error(what + "\n  in PTX, line " + std::to_string(s.line) + ": " + s.text);
  }
  void take(std::string const& s) {
    if (s == "{") return open();
    if (s == "}") return close();
    if (s.back() == ':') {
      labels_[s.substr(0, s.size() - 1)] = int(k_->code.size());
    } else if (s[0] == '.') {
      directive(s);
    } else {
      instruct(s);
    }
  }
  void open() {
    scopes_.emplace_back();
    if (scopes_.size() == 1 && k_ == nullptr) throw error("a scope outside of a kernel");
  }
  void close() {
    scopes_.pop_back();
    if (!scopes_.empty()) return;
    for (auto const& [at, label] : branches_) {
      auto const found = labels_.find(label);
      if (found == labels_.end()) throw error("no label " + label);
      k_->code[at].number = found->second;
    }
    find_joins(*k_);
    std::size_t const fixed = (k_->shared_bytes + 15) / 16 * 16;
    if (!of_launch_.empty()) k_->shared_bytes = fixed;
    for (operand const& o : of_launch_) place(std::uint64_t(fixed), o);
    of_launch_.clear();
    branches_.clear();
    labels_.clear();
    symbols_ = file_symbols_;
    kernels[k_->name] = std::move(*k_);
    k_.reset();
  }

  // ---- declarations ----

  static std::size_t after(std::string const& s, std::string const& word, std::size_t otherwise) {
    std::size_t const at = s.find(word);
    return at == std::string::npos ? otherwise
                                   : std::size_t(std::stoul(s.substr(at + word.size())));
  }
  void directive(std::string const& s) {
    std::string const word = s.substr(0, s.find_first_of(" (\t"));
    if (word == ".version" || word == ".target" || word == ".address_size" || word == ".pragma" ||
        word == ".minnctapersm" || word == ".maxnreg" || word == ".loc" || word == ".file")
      return;
    if (word == ".maxntid" || word == ".reqntid") {
      k_->most_threads = 1;
      for (std::string const& n : split_operands(s.substr(word.size())))
        k_->most_threads *= std::stoi(n);
      return;
    }
    if (s.find(".entry") != std::string::npos) return entry(s);
    if (word == ".reg") return registers(s);
    // A variable of the device has no place: a kernel that names it is refused.
    if (word == ".global" && !k_) return;
    if (s.find(".shared") != std::string::npos) return array(s, k_ ? &k_->shared_bytes : nullptr);
    // Variables of a file, which no kernel may use: their names are not known.
    if (word == ".global" && k_ == nullptr) return;
    if (word == ".local") return array(s, &k_->local_bytes);
    throw error("a directive that is not known: " + word);
  }
  void entry(std::string const& s) {
    k_ = std::make_unique<kernel>();
    std::size_t const open = s.find('('), begin = s.find(".entry") + 6;
    k_->name =
        trimmed(s.substr(begin, open == std::string::npos ? std::string::npos : open - begin));
    k_->moves_unknown = k_->name.starts_with("_ZN3cub");
    if (open == std::string::npos) return;
    for (std::string const& p : split_operands(s.substr(open + 1, s.rfind(')') - open - 1))) {
      std::size_t const align = after(p, ".align ", 0), bracket = p.find('[');
      std::string const name = p.substr(
          p.rfind(' ') + 1, bracket == std::string::npos ? bracket : bracket - p.rfind(' ') - 1);
      std::size_t width = 0;
      for (std::size_t at = p.find(" .", 1); at != std::string::npos; at = p.find(" .", at + 1))
        if (!p.substr(at + 1).starts_with(".align") && !p.substr(at + 1).starts_with(".ptr"))
          width = width_of(p.substr(at + 1, p.find(' ', at + 1) - at - 1));
      std::size_t const bytes = bracket == std::string::npos ? width : width * after(p, "[", 1);
      std::size_t const to = align > 0 ? align : width;
      std::size_t const at = (k_->parameter_bytes + to - 1) / to * to;
      k_->in_order.push_back({at, bytes});
      k_->parameter_bytes = at + bytes;
      symbols_[name] = std::int64_t(at);
    }
  }
  /// `.reg .b32 %r<44>`, or `.reg .b32 %t, %u`.
  void registers(std::string const& s) {
    std::size_t const type_at = s.find('.', 1), type_end = s.find(' ', type_at);
    std::size_t const width = width_of(s.substr(type_at, type_end - type_at));
    for (std::string const& item : split_operands(s.substr(type_end))) {
      std::size_t const many = item.find('<');
      if (many == std::string::npos) {
        add_register(item, width);
      } else {
        std::string const stem = item.substr(0, many);
        for (std::size_t i = 0; i < after(item, "<", 0); ++i)
          add_register(stem + std::to_string(i), width);
      }
    }
  }
  operand add_register(std::string const& name, std::size_t width) {
    operand o;
    o.index = int(k_->registers.size());
    o.at = std::uint32_t(k_->register_bytes);
    o.width = std::uint8_t(width);
    k_->registers.push_back(o);
    k_->register_names.push_back(name);
    k_->register_bytes += width == 0 ? sizeof(lanes) * 2 : width * warp_size;
    scopes_.back()[name] = o;
    return o;
  }
  /// `.shared .align 16 .b8 name[64]`; `[]` is what a launch adds, behind all others.
  void array(std::string const& s, std::size_t* in) {
    std::size_t const bracket = s.find('['), space = s.rfind(' ', bracket);
    std::string const name = s.substr(space + 1, bracket - space - 1);
    std::size_t const type_at = s.rfind('.', space),
                      width = width_of(s.substr(type_at, space - type_at));
    bool const by_launch = s.find("[]") != std::string::npos;
    if (in == nullptr && !by_launch) throw error("shared memory of a file");
    std::int64_t at = 0;
    if (!by_launch) {
      std::size_t const align = after(s, ".align ", width);
      at = std::int64_t((*in + align - 1) / align * align);
      *in = std::size_t(at) + width * after(s, "[", 0);
    }
    symbols_[name] = at;
    if (in == nullptr) file_symbols_[name] = at;
  }

  // ---- instructions ----

  void instruct(std::string s) {
    instruction i;
    i.line = line_;
    std::string const whole = s;
    if (s[0] == '@') {
      std::size_t const space = s.find(' ');
      std::string name = s.substr(1, space - 1);
      if ((i.guard_is_negated = name[0] == '!')) name = name.substr(1);
      i.guard = register_of(name);
      s = s.substr(space + 1);
    }
    std::size_t const space = s.find(' ');
    std::string name = s.substr(0, space);
    std::vector<std::string> given;
    if (space != std::string::npos) given = split_operands(s.substr(space + 1));
    if (name.starts_with("mov.b") && given.size() == 2) {
      if (given[0][0] == '{') name += ".unpack";
      if (given[1][0] == '{') name += ".pack";
    }
    auto const found = opcodes().find(name);
    if (found == opcodes().end()) throw error("an opcode that is not known: " + name);
    i.run = found->second.run;
    i.opcode = number_of(name);
    std::string const& shape = found->second.operands;
    if (name.starts_with("cp.async.bulk.tensor")) separate_coordinates(given);
    for (std::string const& g : given) {
      if (g[0] == '{' && shape[std::size_t(i.count)] == 'm') {
        ++i.count;
        for (std::string const& part : split_operands(g.substr(1, g.size() - 2)))
          i.many.push_back(register_of(part));
      } else if (g[0] == '{') {
        for (std::string const& part : split_operands(g.substr(1, g.size() - 2)))
          add_operand(i, shape, part);
      } else if (std::size_t const bar = g.find('|'); bar != std::string::npos) {
        add_operand(i, shape, g.substr(0, bar));
        add_operand(i, shape, g.substr(bar + 1));
      } else {
        add_operand(i, shape, g);
      }
    }
    int const least = found->second.least;
    if (i.count < (least > 0 ? least : int(shape.size())))
      throw error("fewer operands than expected");
    k_->code.push_back(i);
    k_->text.push_back(whole);
  }
  /// `[%rd1, {%r1, %r2}]`, of a map and coordinates, to three operands.
  static void separate_coordinates(std::vector<std::string>& given) {
    std::vector<std::string> all;
    for (std::string const& g : given) {
      std::size_t const brace = g.find('{');
      if (brace == std::string::npos) {
        all.push_back(g);
        continue;
      }
      all.push_back(trimmed(g.substr(0, g.rfind(',', brace))) + "]");
      for (std::string const& c : split_operands(g.substr(brace + 1, g.find('}') - brace - 1)))
        all.push_back(c);
    }
    given = all;
  }
  static int number_of(std::string const& name) {
    auto const at = std::find(names().begin(), names().end(), name) - names().begin();
    if (at == long(names().size())) names().push_back(name);
    return int(at);
  }
  void add_operand(instruction& i, std::string const& shape, std::string const& text) {
    if (i.count >= int(shape.size()) || i.count >= int(i.of.size()))
      throw error("more operands than expected");
    char const letter = shape[std::size_t(i.count)];
    operand& o = i.of[std::size_t(i.count++)];
    if (text == "_") return;  // a result that nobody wants
    if (letter == 'l') {
      branches_.emplace_back(k_->code.size(), text);
    } else if (letter == 'a') {
      bool const second =
          i.count > 1 && shape.substr(0, std::size_t(i.count - 1)).find('a') != std::string::npos;
      o = address(text, second ? i.number_2 : i.number);
    } else if (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '%' ||
               text[0] == '_') {
      auto const symbol = symbols_.find(text);
      o = symbol != symbols_.end() ? address_of(*symbol, std::size_t(letter - '0'))
                                   : register_of(text);
    } else {
      o = constant(bits_of(text), letter == 'p' ? 8 : std::size_t(letter - '0'));
    }
  }
  /// `[%rd1+16]`, `[name+4]` or `[name]`.
  operand address(std::string const& text, std::int64_t& more) {
    if (text[0] != '[') throw error("an address in brackets is expected, not " + text);
    std::string inside = text.substr(1, text.size() - 2);
    std::size_t const plus = inside.find('+');
    if (plus != std::string::npos) {
      more = std::stoll(inside.substr(plus + 1), nullptr, 0);
      inside = trimmed(inside.substr(0, plus));
    }
    if (auto const symbol = symbols_.find(inside); symbol != symbols_.end())
      return address_of(*symbol, 8);
    return register_of(inside);
  }
  operand register_of(std::string const& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (auto const found = scope->find(name); found != scope->end()) return found->second;
    static std::map<std::string, special> const specials{{"%tid.x", special::tid_x},
                                                         {"%tid.y", special::tid_y},
                                                         {"%tid.z", special::tid_z},
                                                         {"%ntid.x", special::ntid_x},
                                                         {"%ntid.y", special::ntid_y},
                                                         {"%ntid.z", special::ntid_z},
                                                         {"%ctaid.x", special::ctaid_x},
                                                         {"%ctaid.y", special::ctaid_y},
                                                         {"%ctaid.z", special::ctaid_z},
                                                         {"%nctaid.x", special::nctaid_x},
                                                         {"%nctaid.y", special::nctaid_y},
                                                         {"%nctaid.z", special::nctaid_z},
                                                         {"%laneid", special::laneid},
                                                         {"%warpid", special::warpid},
                                                         {"%lanemask_eq", special::lanemask_eq},
                                                         {"%lanemask_lt", special::lanemask_lt},
                                                         {"%lanemask_le", special::lanemask_le},
                                                         {"%lanemask_gt", special::lanemask_gt},
                                                         {"%lanemask_ge", special::lanemask_ge}};
    if (auto const found = specials.find(name); found != specials.end()) {
      std::swap(scopes_.front(), scopes_.back());
      operand const o = add_register(name, 4);
      std::swap(scopes_.front(), scopes_.back());
      k_->specials.push_back({found->second, o});
      return o;
    }
    throw error("no register " + name);
  }
  operand constant(std::uint64_t bits, std::size_t width) {
    operand o;
    o.at = std::uint32_t((k_->constants.size() + 7) / 8 * 8);
    o.width = std::uint8_t(width);
    k_->constants.resize(o.at + width * warp_size);
    place(bits, o);
    return o;
  }
  void place(std::uint64_t bits, operand const& o) {
    for (std::size_t l = 0; l < warp_size; ++l)
      std::memcpy(k_->constants.data() + o.at + l * o.width, &bits, o.width);
  }
  /// Of memory of the launch it is known at the kernel's end.
  operand address_of(std::pair<std::string const, std::int64_t> const& symbol, std::size_t width) {
    operand const o = constant(std::uint64_t(symbol.second), width);
    if (file_symbols_.contains(symbol.first)) of_launch_.push_back(o);
    return o;
  }
  static std::uint64_t bits_of(std::string const& s) {
    if (s.starts_with("0f") || s.starts_with("0F") || s.starts_with("0d") || s.starts_with("0D"))
      return std::stoull(s.substr(2), nullptr, 16);
    if (s[0] == '-') return std::uint64_t(std::stoll(s, nullptr, 0));
    return std::stoull(s, nullptr, 0);
  }

  std::unique_ptr<kernel> k_;
  int line_ = 0;
  std::map<std::string, std::int64_t> symbols_, file_symbols_;
  std::vector<operand> of_launch_;  // constants that are addresses of a launch's shared memory
  std::vector<std::map<std::string, operand>> scopes_;
  std::map<std::string, int> labels_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
};

}  // namespace

std::vector<std::string> const& opcode_names() { return names(); }

std::map<std::string, kernel> read(char const* text) {
  reader r;
  for (statement const& s : split(text)) r.read(s);
  return std::move(r.kernels);
}

}  // namespace ptx
