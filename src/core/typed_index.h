// The keys of one list that a regex takes, as a trie over their interned texts: how many begin with a text, what follows.
#pragma once

#include <unordered_map>
#include <vector>

#include "records.h"

namespace mw {

class TypedIndex {
 public:
  struct Node {
    uint32_t count = 0;         // keys that begin with the text
    bool ends = false;          // it is one
    std::vector<uint8_t> next;  // the bytes with which they go on
  };

  // Brings the index to a list without unknown keys; takes(key) says which of its keys count. Cheap where a key or few
  // were added.
  template <class Takes>
  void update(Records& k, uint32_t list, Takes takes) {
    if (list == list_) return;
    std::vector<TextId> fresh;
    uint32_t at = list;
    for (; at != 0 && at != list_; at = k.typed_rest(at)) {
      const TypedKey key = k.last_typed(at);
      if (takes(key)) fresh.push_back(key.text);
    }
    if (at != list_) nodes_.clear();
    for (TextId text : fresh) add(k, text);
    list_ = list;
  }

  // nullptr: no key begins with the text.
  const Node* find(TextId text) const {
    const auto it = nodes_.find(text);
    return it == nodes_.end() ? nullptr : &it->second;
  }

 private:
  void add(const Records& k, TextId text) {
    nodes_[text].ends = true;
    for (TextId at = text;; at = k.text_parent(at)) {
      const bool fresh = ++nodes_[at].count == 1;
      if (at == 0) break;
      if (fresh) nodes_[k.text_parent(at)].next.push_back(k.last_byte(at));
    }
  }

  uint32_t list_ = 0;
  std::unordered_map<TextId, Node> nodes_;
};

}  // namespace mw
