// SPDX-License-Identifier: BSL-1.0
//
// Transitive reduction of a graph without cycles: the edges that a path of other edges implies.
#pragma once

#include <cstddef>
#include <vector>

namespace pp::cuda {

/// An edge between nodes of these numbers.
struct graph_edge {
  std::size_t from = 0, to = 0;
};

/// The numbers of the edges of a graph of `nodes` nodes that can be left out, since a path of other
/// edges orders the same two nodes.
///
/// law:   the remaining edges are the fewest with the same order
/// needs: no cycle, and no edge twice
/// cost:  edges x chains. Chains are paths without a common node; a greedy search covers a graph of
///        captured streams with hardly more chains than there are streams.
[[gnu::cold]] inline std::vector<std::size_t> redundant_edges(
    std::size_t nodes, std::vector<graph_edge> const& edges) {
  struct node {
    std::vector<std::size_t> in, next;  // numbers of edges, and of nodes
    std::size_t left = 0;               // edges from nodes that are not in `order` yet
    std::size_t chain = 0;
    long position = 0;  // in the chain, from 1
    /// By chain: the last position from which a path leads here; 0: none.
    std::vector<long> reached{};
    bool follows(node const& other) const {
      return other.chain < reached.size() && reached[other.chain] >= other.position;
    }
  };
  std::vector<node> all(nodes);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    all[edges[e].to].in.push_back(e);
    all[edges[e].from].next.push_back(edges[e].to);
  }
  std::vector<std::size_t> order, redundant;
  for (std::size_t n = 0; n < nodes; ++n) {
    all[n].left = all[n].in.size();
    if (all[n].left == 0) order.push_back(n);
  }
  std::vector<long> length;  // by chain
  for (std::size_t i = 0; i < order.size(); ++i) {
    node& mine = all[order[i]];
    for (std::size_t const e : mine.in) {
      node const& from = all[edges[e].from];
      if (from.reached.size() > mine.reached.size()) mine.reached.resize(from.reached.size());
      for (std::size_t c = 0; c < from.reached.size(); ++c)
        if (from.reached[c] > mine.reached[c]) mine.reached[c] = from.reached[c];
      if (mine.position == 0 && length[from.chain] == from.position)
        mine.chain = from.chain, mine.position = from.position + 1;
      for (std::size_t const other : mine.in)
        if (other != e && all[edges[other].from].follows(from)) {
          redundant.push_back(e);
          break;
        }
    }
    if (mine.position == 0) {
      mine.chain = length.size(), mine.position = 1;
      length.push_back(0);
    }
    length[mine.chain] = mine.position;
    if (mine.reached.size() <= mine.chain) mine.reached.resize(mine.chain + 1);
    mine.reached[mine.chain] = mine.position;
    for (std::size_t const n : mine.next)
      if (--all[n].left == 0) order.push_back(n);
  }
  return redundant;
}

}  // namespace pp::cuda
