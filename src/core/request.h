// One request: configurations and records, interned; the memo of its masks; the history of its matchers.
//
// A configuration is an interned sorted set of (machine, state, rest), always expanded: its items can read a byte, and
// `accepting` says that the text may end here. Beside the stacks a configuration carries obligations, automata that
// must (not) match from here; their set is empty for the constraints there are so far. Not thread-safe: matchers of a
// request share one lock.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "program.h"
#include "records.h"
#include "typed_index.h"

namespace mw {

using ConfigId = uint32_t;
using ObligationsId = uint32_t;  // 0 = none
inline constexpr RestId kEndOfText = 0;

struct Config {
  std::vector<Item> items;
  bool accepting = false;
  ObligationsId obligations = 0;
};

struct MaskRecord;
class SpellingSearch;
class Uniqueness;

class Request {
 public:
  // settling: only asked for costs while those of its program's nodes are being settled.
  explicit Request(std::shared_ptr<Program> program, bool settling = false);
  ~Request();
  // One that lay idle, or a new one; and back.
  static std::unique_ptr<Request> for_matchers(std::shared_ptr<Program> program);
  static void let_go(std::unique_ptr<Request> request);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Program& program() const { return *program_; }
  const std::shared_ptr<Program>& shared_program() const { return program_; }
  Vocab& vocab() const { return program_->vocab(); }
  const Machine& machine(MachineId id) const { return program_->machine(id); }
  Records& records() { return records_; }

  // The configuration before the first byte. Check needs() afterwards.
  ConfigId root();
  const Config& config(ConfigId id) const { return *configs_[id]; }
  // Interns items that are expanded already.
  ConfigId intern(std::vector<Item>&& items, bool accepting);
  // Adds the item, if it can read a byte, and all that it leads to without one.
  void expand(const Item& item, std::vector<Item>& out, bool& accepting);
  ConfigId after_pop(RestId rest, uint32_t value);
  ConfigId after_push(const Item& at, const Accept& a);
  std::span<const Item> frames(RestId rest) const { return rests_[rest]; }
  // Of the frames to return to: how many there are; whether items of some must differ; whether some has an open_item.
  uint32_t rest_depth(RestId rest) const { return rest_notes_[rest].depth; }
  bool rest_is_unique(RestId rest) const { return rest_notes_[rest].unique; }
  bool rest_has_open_item(RestId rest) const { return rest_notes_[rest].open_item; }

  // Reads one byte from a set of items.
  void step(std::span<const Item> from, uint8_t b, std::vector<Item>& to, bool& accepting);
  // The configuration after a token's bytes; kNoConfig where it dies.
  static constexpr ConfigId kNoConfig = 0xffffffffu;
  ConfigId advance(ConfigId from, std::string_view bytes);

  // What depends on the text so far; nullptr where no items must differ.
  Uniqueness* uniqueness() { return uniqueness_.get(); }
  // Of the text before the byte that is being read; 0 in walks.
  uint32_t recording() const { return recording_; }
  void set_recording(uint32_t recording) { recording_ = recording; }

  // Nodes that were reached before they were defined: the result of the last call is then incomplete and must be thrown
  // away; define them and call again.
  std::vector<NodeId>& needs() { return needs_; }
  bool lacks_nodes() const { return !needs_.empty(); }

  // What the costs below count from now on; tokens at first.
  void count_costs_in(CostUnit unit) { unit_ = unit; }
  CostUnit cost_unit() const { return unit_; }
  NodeCosts costs() const { return {*program_, unit_}; }
  // Closing cost, an upper bound by a witness (cost.cc). Children's costs must be settled.
  uint32_t item_cost(const Item& item);
  uint32_t rest_cost(RestId rest);
  uint32_t config_cost(ConfigId id);

  // Makes sure that the cost of a node may be asked for. False: nodes are needed first.
  bool settle_cost(NodeId n) {
    return settling_ || program_->costs_settled(n, unit_) || program_->settle_costs(n, needs_, unit_);
  }
  bool is_settling() const { return settling_; }
  TypedIndex& typed_index(uint32_t kind) { return typed_[kind]; }
  // Costs of control states with the keys typed so far (joint_cost.cc).
  std::unordered_map<uint64_t, uint32_t>& control_costs() { return control_costs_[static_cast<size_t>(unit_)]; }

  // Set by a machine when a step depends on text that a base left open; see Walker.
  bool take_doubt() {
    const bool was = doubt_;
    doubt_ = false;
    return was;
  }
  void doubt() { doubt_ = true; }

  // Where a machine keeps what it remembers in this request.
  std::unique_ptr<MachineMemory>& memory(MachineId id) {
    if (memories_.size() <= id) memories_.resize(id + 1);
    return memories_[id];
  }

  // The memo of masks: nullptr where there is none. What is kept may be dropped with the next one.
  const MaskRecord* known_mask(ConfigId id) const {
    const auto hit = masks_.find(id);
    return hit == masks_.end() ? nullptr : hit->second.get();
  }
  const MaskRecord& keep_mask(ConfigId id, std::unique_ptr<MaskRecord> mask);
  std::vector<int8_t>& liveness() { return liveness_; }  // by configuration; see spelling.h
  SpellingSearch& spelling(bool costs);
  size_t config_count() const { return configs_.size(); }
  // About: configurations, frames, masks and what belongs to them.
  size_t bytes_used() const { return 2 * bytes_used_ + mask_bytes_; }

 private:
  struct RestNotes {
    uint32_t depth = 0;
    bool unique = false, open_item = false;
  };
  RestId intern_rest(const Item& frame);
  ConfigId pop_to(RestId rest, uint32_t value);
  void settle(std::vector<Item>& items);

  std::shared_ptr<Program> program_;
  Records records_;
  std::vector<std::unique_ptr<Config>> configs_;
  HashIndex config_index_;
  std::vector<std::vector<Item>> rests_;
  HashIndex rest_index_;
  std::vector<RestNotes> rest_notes_;
  std::vector<ConfigId> after_pop_;   // by rest, for value 0
  std::unordered_map<uint64_t, ConfigId> after_value_;  // by rest and value, for others
  std::unordered_map<uint64_t, uint32_t> control_costs_[2];  // by CostUnit
  std::unordered_map<uint32_t, TypedIndex> typed_;
  std::vector<uint32_t> rest_costs_[2];  // by CostUnit and rest; kUnsettled
  struct PushKey {
    State resume;
    MachineId machine;
    RestId rest;
    NodeId node;
    uint32_t given;
    bool operator==(const PushKey&) const = default;
  };
  struct HashPush {
    size_t operator()(const PushKey& k) const {
      const uint64_t pushed = static_cast<uint64_t>(k.node) << 32 | k.given;
      return static_cast<size_t>(mix(mix(mix(mix(5, k.resume), k.machine), k.rest), pushed));
    }
  };
  std::unordered_map<PushKey, ConfigId, HashPush> after_push_;
  std::vector<Item> scratch_[2];  // of advance
  std::vector<NodeId> needs_;
  std::vector<std::unique_ptr<MachineMemory>> memories_;
  using Masks = std::unordered_map<ConfigId, std::unique_ptr<MaskRecord>>;
  Masks masks_, dropped_;  // dropped ones are freed a few at a time: all at once would take milliseconds
  size_t mask_bytes_ = 0;
  std::vector<int8_t> liveness_;
  std::shared_ptr<SpellingSearch> spelling_[2];  // shared: its type is complete in spelling.cc alone
  std::unique_ptr<Uniqueness> uniqueness_;
  uint32_t recording_ = 0;
  ConfigId root_ = kNoConfig;
  bool doubt_ = false;
  bool settling_ = false;
  CostUnit unit_ = CostUnit::Tokens;
  size_t bytes_used_ = 0;
};

}  // namespace mw
