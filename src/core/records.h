// What does not fit into a state word: immutable records of one request, structurally shared and interned, so that equal
// histories have equal handles. They live as long as the request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "intern.h"

namespace mw {

// Text typed so far, as a linked list of bytes; 0 = the empty text.
using TextId = uint32_t;
inline constexpr TextId kUnknownText = 0xffffffffu;  // a key whose text the walk did not spell out

// The keys of an object: how far the named ones are, which were seen, which others were typed.
struct ObjectRecord {
  uint32_t next = 0;    // fixed order: the first name that may still come
  uint32_t seen = 0;    // any order: handle of a set of names
  uint32_t others = 0;  // handle of the list of other keys, 0 = none
  bool operator==(const ObjectRecord&) const = default;
};

// A key that is no prefix of a name any more, while it is typed.
struct KeyText {
  uint32_t object = 0;
  TextId text = 0;
  bool operator==(const KeyText&) const = default;
};

// A key that a KeyMachine read, and its kind: keys of one regex.
struct TypedKey {
  TextId text = 0;
  uint32_t kind = 0;
  bool operator==(const TypedKey&) const = default;
};

// A key while a KeyMachine reads it: the keys typed before, the text, the regex's state.
struct KeyCursor {
  uint32_t list = 0;
  TextId text = 0;
  uint32_t dfa = 0;
  bool operator==(const KeyCursor&) const = default;
};

// Where a joint object or array is: its control state, the keys typed so far, an entry or an alternative.
struct JointRecord {
  int32_t control = 0;
  uint32_t list = 0;
  uint32_t index = 0;
  bool operator==(const JointRecord&) const = default;
};

class Records {
 public:
  Records() { clear(); }

  void clear() {
    objects_.clear();
    keys_.clear();
    sets_.clear();
    set_index_.clear();
    texts_.clear();
    others_.clear();
    joints_.clear();
    cursors_.clear();
    typed_keys_.clear();
    typed_lists_.clear();
    sorted_list_ = 0;
    objects_.intern({});
    sets_.emplace_back();
    set_index_.insert(hash_set({}), 0);
    texts_.intern({0, 0, 0});
    others_.intern({kUnknownText, kUnknownText});  // handle 0: no list; unlike {0, 0}, no list of the empty key
    typed_lists_.intern({kUnknownText, kUnknownText});
    typed_known_.assign(1, 0);
  }

  uint32_t object(const ObjectRecord& r) { return objects_.intern(r); }
  const ObjectRecord& object(uint32_t id) const { return objects_[id]; }

  uint32_t key(const KeyText& k) { return keys_.intern(k); }
  const KeyText& key(uint32_t id) const { return keys_[id]; }

  uint32_t joint(const JointRecord& j) { return joints_.intern(j); }
  JointRecord joint(uint32_t id) const { return joints_[id]; }
  uint32_t cursor(const KeyCursor& c) { return cursors_.intern(c); }
  KeyCursor cursor(uint32_t id) const { return cursors_[id]; }

  // Lists of typed keys; 0 = none.
  uint32_t typed_key(const TypedKey& k) { return typed_keys_.intern(k); }
  TypedKey typed_key(uint32_t handle) const { return typed_keys_[handle]; }
  uint32_t add_typed(uint32_t list, uint32_t key) {
    const uint32_t id = typed_lists_.intern({list, key});
    if (id < typed_known_.size()) return id;
    const uint32_t known = typed_known_[list];
    const bool unknown = typed_keys_[key].text == kUnknownText;
    typed_known_.push_back(unknown ? known : id);
    if (!unknown && known != list) {
      const uint32_t without = add_typed(known, key);
      typed_known_[id] = without;
    }
    return id;
  }
  // The keys of known text that pass a test, in an order of their own.
  template <class Test>
  uint32_t sorted_typed(uint32_t list, Test test) {
    std::vector<uint32_t> keys;
    for (uint32_t at = typed_known_[list]; at != 0; at = typed_lists_[at].rest)
      if (test(last_typed(at))) keys.push_back(typed_lists_[at].text);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    uint32_t out = 0;
    for (uint32_t key : keys) out = add_typed(out, key);
    return out;
  }
  uint32_t typed_rest(uint32_t list) const { return typed_lists_[list].rest; }
  TypedKey last_typed(uint32_t list) const { return typed_keys_[typed_lists_[list].text]; }
  // The list without the keys whose text is unknown.
  uint32_t known_typed(uint32_t list) const { return typed_known_[list]; }
  template <class Test>
  uint32_t count_unknown_typed(uint32_t list, Test of_kind) const {
    uint32_t n = 0;
    for (; typed_known_[list] != list; list = typed_lists_[list].rest) {
      const TypedKey key = last_typed(list);
      if (key.text == kUnknownText && of_kind(key.kind)) ++n;
    }
    return n;
  }

  // Sets of name indices.
  bool in_set(uint32_t set, uint32_t i) const {
    const auto& words = sets_[set];
    return i / 64 < words.size() && ((words[i / 64] >> (i % 64)) & 1u) != 0;
  }
  uint32_t with(uint32_t set, uint32_t i) {
    std::vector<uint64_t> words = sets_[set];
    if (words.size() <= i / 64) words.resize(i / 64 + 1, 0);
    words[i / 64] |= uint64_t{1} << (i % 64);
    const uint64_t h = hash_set(words);
    const uint32_t found = set_index_.find(h, [&](uint32_t id) { return sets_[id] == words; });
    if (found != HashIndex::kNone) return found;
    const auto id = static_cast<uint32_t>(sets_.size());
    sets_.push_back(std::move(words));
    set_index_.insert(h, id);
    return id;
  }

  TextId append(TextId text, uint8_t b) {
    return texts_.intern({text, b, texts_[text].length + 1});
  }
  uint32_t text_length(TextId text) const { return texts_[text].length; }
  TextId text_parent(TextId text) const { return texts_[text].parent; }
  uint8_t last_byte(TextId text) const { return texts_[text].byte; }
  bool is_prefix(TextId prefix, TextId text) const {
    const uint32_t n = texts_[prefix].length;
    while (texts_[text].length > n) text = texts_[text].parent;
    return text == prefix;
  }

  uint32_t add_other(uint32_t list, TextId text) { return others_.intern({list, text}); }
  // The texts of a list, sorted. Valid until the next call.
  const std::vector<std::string>& sorted_others(uint32_t list) {
    if (list == sorted_list_ && list != 0) return sorted_;
    sorted_.clear();
    for (uint32_t at = list; at != 0; at = others_[at].rest)
      if (others_[at].text != kUnknownText) sorted_.push_back(text(others_[at].text));
    std::sort(sorted_.begin(), sorted_.end());
    sorted_list_ = list;
    return sorted_;
  }
  std::string text(TextId id) const {
    std::string out(texts_[id].length, '\0');
    for (size_t i = out.size(); i-- > 0; id = texts_[id].parent) out[i] = static_cast<char>(texts_[id].byte);
    return out;
  }
  template <class Test>
  bool any_other(uint32_t list, Test test) const {
    for (; list != 0; list = others_[list].rest)
      if (test(others_[list].text)) return true;
    return false;
  }

 private:
  struct Text {
    TextId parent;
    uint8_t byte;
    uint32_t length;
    bool operator==(const Text&) const = default;
  };
  struct Other {
    uint32_t rest;
    TextId text;
    bool operator==(const Other&) const = default;
  };
  struct HashObject {
    uint64_t operator()(const ObjectRecord& r) const { return mix(mix(mix(1, r.next), r.seen), r.others); }
  };
  struct HashKey {
    uint64_t operator()(const KeyText& k) const { return mix(mix(9, k.object), k.text); }
  };
  struct HashText {
    uint64_t operator()(const Text& t) const { return mix(mix(2, t.parent), t.byte); }
  };
  struct HashOther {
    uint64_t operator()(const Other& o) const { return mix(mix(3, o.rest), o.text); }
  };
  struct HashTyped {
    uint64_t operator()(const TypedKey& k) const { return mix(mix(10, k.text), k.kind); }
  };
  struct HashCursor {
    uint64_t operator()(const KeyCursor& c) const { return mix(mix(mix(13, c.list), c.text), c.dfa); }
  };
  struct HashJoint {
    uint64_t operator()(const JointRecord& j) const {
      return mix(mix(mix(14, static_cast<uint64_t>(j.control)), j.list), j.index);
    }
  };
  static uint64_t hash_set(const std::vector<uint64_t>& words) {
    uint64_t h = 4;
    for (uint64_t w : words) h = mix(h, w);
    return h;
  }

  Interner<ObjectRecord, HashObject> objects_;
  Interner<KeyText, HashKey> keys_;
  std::vector<std::vector<uint64_t>> sets_;
  HashIndex set_index_;
  Interner<Text, HashText> texts_;
  Interner<Other, HashOther> others_;
  Interner<JointRecord, HashJoint> joints_;
  Interner<KeyCursor, HashCursor> cursors_;
  Interner<TypedKey, HashTyped> typed_keys_;
  Interner<Other, HashOther> typed_lists_;  // `text` is the handle of a typed key
  std::vector<uint32_t> typed_known_;       // by list
  uint32_t sorted_list_ = 0;
  std::vector<std::string> sorted_;
};

}  // namespace mw
