// SPDX-License-Identifier: BSL-1.0
//
// The mask of a Dropout: four elements from each block of Philox, many blocks side by side, as
// vector code.

/// The counters from which the random bits of a row are computed.
struct random_row {
  std::uint64_t seed;
  std::uint32_t step, sample, stream;
  std::uint32_t first_block;  ///< of the row's element 0: every row begins with a new block
};

/// Philox4x32-10 of `Blocks` consecutive counters: words[w][i] = word w of block first + i.
///
/// law:    the words of philox() in base/philox.hpp; loops are over blocks, so that they are vector
///         code
/// source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011
template <int Blocks>
void random_words(random_row const& from, std::uint32_t first, std::uint32_t (&words)[4][Blocks]) {
  std::uint32_t key0 = static_cast<std::uint32_t>(from.seed),
                key1 = static_cast<std::uint32_t>(from.seed >> 32);
  for (int i = 0; i < Blocks; ++i) {
    words[0][i] = first + static_cast<std::uint32_t>(i);
    words[1][i] = from.sample;
    words[2][i] = from.stream;
    words[3][i] = from.step;
  }
  for (int round = 0; round < 10; ++round) {  // as philox() in base/philox.hpp
    PIPE_INDEPENDENT
    for (int i = 0; i < Blocks; ++i) {
      std::uint64_t const a = std::uint64_t(0xD2511F53u) * words[0][i],
                          b = std::uint64_t(0xCD9E8D57u) * words[2][i];
      words[0][i] = static_cast<std::uint32_t>(b >> 32) ^ words[1][i] ^ key0;
      words[1][i] = static_cast<std::uint32_t>(b);
      words[2][i] = static_cast<std::uint32_t>(a >> 32) ^ words[3][i] ^ key1;
      words[3][i] = static_cast<std::uint32_t>(a);
    }
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

/// Elements of room for a mask of `Count` elements from a column that is a multiple of the lanes:
/// whole blocks.
template <int Count, class T>
inline constexpr int mask_room = (Count + (lanes<T> < 4 ? 4 - lanes<T> : 0) + 3) / 4 * 4;

/// Factors of elements [column, column + Count) of a row: 0 for a dropped element, else
/// Layer::scale = 1 / (1 - p); all 1 if `training` is false. Returns a pointer into `room`, to the
/// first factor.
///
/// shape: -> mask (Count); room for mask_room<Count, T> elements
/// law:   element c of a row takes word c % 4 of the row's block c / 4, for any Count and column;
///        with Layer::all_columns every element takes word 0 of the first block
/// needs: column: a multiple of the lanes
template <class Layer, int Count, class T>
PIPE_ONE_COPY T const* dropout_mask(random_row const& from, extent column, bool training, T* room) {
  constexpr int Blocks = mask_room<Count, T> / 4;
  if (!training) {
    for (int i = 0; i < 4 * Blocks; ++i) room[i] = T(1);
    return room;
  }
  constexpr T kept = Layer::template scale<T>();
  if constexpr (Layer::all_columns) {
    std::uint32_t words[4][1];
    random_words<1>(from, from.first_block, words);
    T const factor = words[0][0] < Layer::drops_below ? T(0) : kept;
    for (int i = 0; i < 4 * Blocks; ++i) room[i] = factor;
    return room;
  } else {
    std::uint32_t words[4][Blocks];
    random_words<Blocks>(from, from.first_block + static_cast<std::uint32_t>(column / 4), words);
    PIPE_INDEPENDENT
    for (int i = 0; i < Blocks; ++i) {  // g++ vectorises this form, four elements side by side
      room[4 * i] = words[0][i] < Layer::drops_below ? T(0) : kept;
      room[4 * i + 1] = words[1][i] < Layer::drops_below ? T(0) : kept;
      room[4 * i + 2] = words[2][i] < Layer::drops_below ? T(0) : kept;
      room[4 * i + 3] = words[3][i] < Layer::drops_below ? T(0) : kept;
    }
    return room + column % 4;
  }
}
