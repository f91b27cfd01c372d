// Arrays whose items must differ: where in a text a configuration is, as far as that depends on what was written.
//
// A position is a configuration beside a recording of the text. The mask of a configuration serves all positions that
// share it, up to few tokens: those that bring the unfinished item nearer to one that it must not be, each of them tried
// (`remove`), and those that go on into a further item and were left open (MaskRecord::doubts; `add`).
//
// Whether such an end of a token can be finished: an item that can no longer become one of the forbidden values is free, and
// so is all that comes after it, since positions that have to be filled never run out of values (UniqueItems). Ways
// from the others are searched byte by byte until one is free. They are few: beginnings of the forbidden values.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mask.h"
#include "recorder.h"
#include "request.h"

namespace mw {

class UniqueItems;

struct Position {
  ConfigId config;
  RecordingId recording;
};

class Uniqueness {
 public:
  explicit Uniqueness(Request& request) : request_(request), recorder_(request.records()) {}

  Recorder& recorder() { return recorder_; }
  // The position after some bytes, without the stacks that cannot be finished; kNoConfig where none can.
  Position advance(const Position& from, std::string_view bytes);

  struct Repair {
    std::vector<TokenId> add, remove;
  };
  // How the mask of a position differs from that of its configuration. nullptr: nodes are needed first.
  const Repair* repair(const Position& at, const MaskRecord& record);
  // The same for the mask of the tokens after which at most `limit` more are needed.
  Repair repair_within(const Position& at, const MaskRecord& record, uint32_t limit);
  // Closing cost in tokens (uniqueness_cost.cc). Costs of nodes must be settled.
  uint32_t cost(const Position& at);
  bool knows_repair(const Position& at) const { return repairs_.contains(key(at)); }

  // --- for machines
  void note_refusal() { refused_ = true; }
  std::unordered_map<uint32_t, std::vector<ValueId>>& kept(const UniqueItems* of) { return kept_[of]; }
  // Which nodes are known to be endless (machines/unique.h).
  std::vector<NodeId>& endless_nodes() { return endless_nodes_; }
  bool enter(NodeId node);  // false: it is being asked about already
  void leave(NodeId node) { std::erase(entered_, node); }

 private:
  struct Place {  // some stacks, and whether the text may end
    std::vector<Item> items;
    bool accepting = false;
    RecordingId recording = 0;
  };
  static uint64_t key(const Position& p) { return static_cast<uint64_t>(p.config) << 32 | p.recording; }
  Place step(const Place& from, uint8_t b);
  bool concerns(const Item& item) const;
  bool is_free(const Item& item, RecordingId recording);
  bool is_free_at(const Item& item, RecordingId recording, bool by_number, std::vector<uint8_t>* next_bytes);
  bool lives(const Item& item, RecordingId recording);
  bool all_free(const Place& place);
  bool any_fits(const Place& place);
  // --- the search for a way on
  struct Visit {
    ConfigId config;
    RecordingId recording;
    uint32_t zeros;  // read in a row, to the same configuration
  };
  bool search(ConfigId from, RecordingId recording);
  bool visit(const Visit& at, bool spaces, std::vector<Visit>& queue);
  bool visit_byte(const Visit& at, uint8_t b, std::vector<Visit>& queue);
  std::vector<uint8_t> bytes_from(const std::vector<Item>& items, RecordingId recording, bool spaces);
  // --- costs
  static constexpr size_t kNoStep = ~size_t{0};
  struct Step {  // on a way of one stack
    Item item;
    RecordingId recording;
    size_t before;
    uint32_t zeros;
  };
  uint32_t cost(const Item& item, RecordingId recording);
  void note_cost(const Item& item, RecordingId recording, uint32_t cost);
  void note_way(const std::vector<Step>& steps, size_t end);
  void note_accepting(const std::vector<Step>& steps, size_t last);
  void search_cost(const Item& from, RecordingId recording);
  void follow_texts(const Item& item, RecordingId recording);
  void follow_text(const Item& item, RecordingId recording, std::string_view text, const Item& array);
  // --- repairs
  struct Near {
    TrieNode node;
    Place place;
    bool lost;  // a stack has died on the way for what was written
  };
  void settle_doubts(const Position& at, const MaskRecord& record, Repair& out);
  void find_removed(const Position& at, Repair& out);
  void look_at(const Near& near, TrieNode child, std::vector<Near>& stack, Repair& out);
  std::vector<uint8_t> near_bytes(const Near& near);

  Request& request_;
  Recorder recorder_;
  bool refused_ = false;
  std::vector<NodeId> entered_, endless_nodes_;
  std::map<const UniqueItems*, std::unordered_map<uint32_t, std::vector<ValueId>>> kept_;
  std::unordered_map<uint64_t, bool> lives_;
  std::unordered_map<uint64_t, Repair> repairs_;
  std::unordered_map<uint64_t, uint32_t> costs_;
  std::unordered_map<uint64_t, uint8_t> visited_;
  uint32_t limit_ = kNoCost;  // of the closing costs of tokens, while a repair is made; kNoCost: they do not count
  size_t forbidden_ = 0;  // values, at most, during a search
  // Scratch space.
  std::vector<ContainerId> open_;
  std::vector<ValueId> values_;
};

}  // namespace mw
