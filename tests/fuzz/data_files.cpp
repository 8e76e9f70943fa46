// SPDX-License-Identifier: BSL-1.0
//
// Any bytes as a data file: refused with a data_error, or read to what the file can hold. The first
// byte chooses the format.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <pipe/data.hpp>

#include "fuzz.hpp"

namespace {

void read_array(pp::number_array const& a) {
  law(a.bytes.size() == a.size() * std::size_t(pp::files::size_of(a.type)));
  law(a.size() == pp::detail::elements_of(a.shape));
  law(a.numbers<double>().size() == a.size());
  a.numbers<int>();
}

void read(std::uint8_t format, std::string_view bytes) {
  switch (format % 5) {
    case 0: return read_array(pp::detail::parse_idx("file", bytes));
    case 1: return read_array(pp::detail::parse_npy("file", bytes));
    case 2: {
      pp::image_set set;
      pp::detail::append_cifar(set, "file", bytes, format / 5 % 2 * 20, 10);
      return law(set.pixels.size() == set.size() * set.image_size());
    }
    case 3: {
      pp::message_catalogue const all("file", bytes);
      std::size_t size = 0;
      for (auto const& m : all.messages()) {
        law(!m.forms.empty());
        for (auto const& form : m.forms) size += form.size();
        size += m.context.size() + m.id.size() + m.plural_id.size();
      }
      law(size <= bytes.size());
      for (unsigned long n = 0; n < 10; ++n) law(all.form_of(n) < all.plural_forms());
      return;
    }
    default: {
      pp::detail::tokenizer_parts parts("file", "file");
      parts.read_json(bytes);
      pp::byte_pair_tokenizer const t = parts.tokenizer();
      law(t.decode(t.encode(bytes)) == bytes);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    if (size > 0) read(data[0], {reinterpret_cast<char const*>(data) + 1, size - 1});
  } catch (pp::data_error const&) {
  }
  return 0;
}
