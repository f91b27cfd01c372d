// What was written so far, as values: a streaming reader of the JSON text, whose state is one interned number.
//
// Where items of an array must differ, what may follow depends on the values of those that came. They are a function of
// the bytes alone, whatever machines read them, so that one recording serves all positions of a configuration. Finished
// values are interned in a canonical form, two are equal (JSON Schema Core 2020-12, 4.2.2) iff their handles are: numbers
// by value, strings decoded, objects by their sorted members. Programs in which nothing must differ record nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "char_decoder.h"
#include "intern.h"
#include "records.h"

namespace mw {

using ValueId = uint32_t;
using RecordingId = uint32_t;  // 0: nothing is recorded
using ContainerId = uint32_t;  // 0: none is open

inline constexpr ValueId kNoValue = 0xffffffffu;

struct JsonValue {
  enum Kind : uint8_t { Null, False, True, Number, String, Array, Object } kind = Null;
  uint32_t data = 0;  // Number, String: a TextId; Array: a list; Object: a set of members
  bool operator==(const JsonValue&) const = default;
};

// An open container: what is finished in it, and the key of the member that is being read.
struct OpenContainer {
  ContainerId parent = 0;
  uint32_t data = 0;
  TextId key = kUnknownText;  // kUnknownText: none
  bool is_object = false;
  bool operator==(const OpenContainer&) const = default;
};

struct Recording {
  enum Mode : uint8_t { Between, Finished, String, Number, Word } mode = Between;
  ContainerId container = 0;
  uint32_t data = 0;  // String, Number: the text so far; Finished, Word: the value
  Sub sub = 0;        // String: of the next character
  bool operator==(const Recording&) const = default;
};

class Recorder {
 public:
  explicit Recorder(Records& records) : records_(records) { reset(); }

  static constexpr RecordingId kStart = 1;  // the empty text
  RecordingId next(RecordingId r, uint8_t b);
  const Recording& recording(RecordingId r) const { return recordings_[r]; }
  const OpenContainer& container(ContainerId c) const { return containers_[c]; }
  // The value that would be finished here, kNoValue where none was begun, or it needs more.
  ValueId value_at_end(RecordingId r);
  // The value of a whole JSON text.
  ValueId value_of(std::string_view json);

  // Lists of values: 0 is empty.
  uint32_t length(uint32_t list) const { return lengths_[list]; }
  uint32_t rest(uint32_t list) const { return lists_[list].rest; }
  ValueId last(uint32_t list) const { return lists_[list].value; }
  bool contains(uint32_t list, ValueId v) const {
    for (; list != 0; list = lists_[list].rest)
      if (lists_[list].value == v) return true;
    return false;
  }

  uint32_t depth(ContainerId c) const {
    uint32_t n = 0;
    for (; c != 0; c = containers_[c].parent) ++n;
    return n;
  }
  // The open containers, the innermost first.
  void open(RecordingId r, std::vector<ContainerId>& out) const;
  // Whether what was read of a value may become `v`: it lies in the containers of `path`, the innermost first, if any. Says
  // no only if that is certain. `ended`: a number is complete.
  bool may_become(RecordingId r, std::span<const ContainerId> path, bool ended, ValueId v);
  // The bytes with which a string (the innermost value or key) goes on so that it may still become part of `v`.
  void next_bytes(RecordingId r, std::span<const ContainerId> path, ValueId v, std::vector<uint8_t>& out) const;

 private:
  struct List {
    uint32_t rest;
    ValueId value;
    bool operator==(const List&) const = default;
  };
  using Members = std::vector<std::pair<TextId, ValueId>>;
  struct HashValue {
    uint64_t operator()(const JsonValue& v) const { return mix(mix(31, v.kind), v.data); }
  };
  struct HashList {
    uint64_t operator()(const List& l) const { return mix(mix(32, l.rest), l.value); }
  };
  struct HashContainer {
    uint64_t operator()(const OpenContainer& c) const {
      return mix(mix(mix(33, c.parent), uint64_t{c.data} << 1 | (c.is_object ? 1u : 0u)), c.key);
    }
  };
  struct HashRecording {
    uint64_t operator()(const Recording& r) const {
      return mix(mix(mix(34, uint64_t{r.container} << 3 | r.mode), r.data), r.sub);
    }
  };

  void reset();
  RecordingId put(const Recording& r) { return recordings_.intern(r); }
  ValueId value(JsonValue::Kind kind, uint32_t data) { return values_.intern({kind, data}); }
  uint32_t append(uint32_t list, ValueId v);
  uint32_t with_member(uint32_t members, TextId key, ValueId v);
  TextId text(std::string_view bytes);
  ValueId number(TextId text);
  Recording in_string(Recording r, uint8_t b);
  TextId in_number(TextId text, uint8_t b);
  Recording structural(Recording r, uint8_t b, ValueId value);
  ContainerId with(ContainerId c, ValueId value);
  ValueId finished(const Recording& r);
  // Down the path: the part of `v` that lies where the recording is. False: v is ruled out. kNoValue: no such part yet.
  bool descend(std::span<const ContainerId> path, const Recording& r, ValueId& v) const;
  bool holds_items(uint32_t list, uint32_t of) const;
  const Members& members(uint32_t set) const { return members_[set]; }
  ValueId member(uint32_t set, TextId key) const;
  bool key_may_become(const OpenContainer& c, const Recording& r, uint32_t of) const;
  bool number_may_become(TextId text, ValueId v) const;

  Records& records_;
  Interner<JsonValue, HashValue> values_;
  Interner<List, HashList> lists_;
  std::vector<uint32_t> lengths_;
  std::vector<Members> members_;
  HashIndex member_index_;
  Interner<OpenContainer, HashContainer> containers_;
  Interner<Recording, HashRecording> recordings_;
};

}  // namespace mw
