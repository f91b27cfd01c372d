// Control states: what may come in an object or array after the members that came before.
//
// Where several subschemas look at one object, which members may still come depends on all that came: a finite automaton,
// whose states are nodes of the program and, like them, made when first reached. Each of them can be completed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "machines/machine.h"

namespace mw {

// Entry e: a member with a key of node keys[e] (of an array: an item, without a key). Its alternatives are offsets[e] to
// offsets[e + 1]: with a value of node children[a] the object goes on in state nexts[a].
struct Control {
  bool may_close = false;
  std::vector<NodeId> keys;
  std::vector<uint32_t> offsets;
  std::vector<NodeId> children, nexts;
  int32_t witness = -1;  // the alternative that a shortest way to the end takes; -1 where it may close
  uint32_t witness_entry = 0;
  uint32_t dearest = 0;  // of an array whose items must differ: no item that has to come takes more tokens

  uint32_t entries() const { return static_cast<uint32_t>(keys.size()); }
  // The alternatives of an entry.
  std::pair<uint32_t, uint32_t> range(uint32_t entry) const { return {offsets[entry], offsets[entry + 1]}; }
  // The alternatives of an item.
  uint32_t items() const { return static_cast<uint32_t>(children.size()); }
};

}  // namespace mw
