// A compiled constraint: nodes, each a set of machine starts, lowered when first reached.
//
// Nodes and machines are published once and never change, so that walks read them without a lock; defining is for one
// thread at a time (the binding holds the GIL and a lock).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "automaton.h"
#include "bases.h"
#include "control.h"
#include "counters.h"
#include "machines/machine.h"
#include "request_pool.h"
#include "stable_vector.h"
#include "vocab.h"
#include "white_space.h"

namespace mw {

struct Start {
  MachineId machine;
  State state;
};

class Program {
 public:
  Program(std::shared_ptr<Vocab> vocab, Whitespace whitespace) : vocab_(std::move(vocab)), whitespace_(whitespace) {}
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Vocab& vocab() const { return *vocab_; }
  Whitespace whitespace() const { return whitespace_; }

  NodeId new_node() { return static_cast<NodeId>(nodes_.append()); }
  size_t node_count() const { return nodes_.size(); }
  bool is_node(NodeId n) const { return n >= 0 && static_cast<size_t>(n) < nodes_.size(); }
  bool is_defined(NodeId n) const { return node(n).defined.load(std::memory_order_acquire); }
  void define_machine(NodeId n, std::unique_ptr<Machine> machine, State start);
  void define_union(NodeId n, std::vector<NodeId> members);
  void define_control(NodeId n, Control control);
  // The machine of a node, nullptr where it is none, or not defined yet.
  const Machine* machine_at(NodeId n) const {
    const Node& there = node(n);
    if (!is_defined(n) || there.is_union || there.control) return nullptr;
    return machines_[there.start.machine].get();
  }
  // A control state, or nullptr and a need where it is not defined yet.
  const Control* control(NodeId n, std::vector<NodeId>& needs) const {
    if (!is_defined(n)) {
      needs.push_back(n);
      return nullptr;
    }
    return node(n).control ? node(n).control.get() : &no_control_;
  }

  // Whether every prefix that the machines take can be finished by tokens: then whole sets of tokens may be taken. For
  // vocabularies that lack bytes this is settled before the first mask, which wants all nodes defined: one that the
  // vocabulary cannot spell would else come up when it is too late. False: `needs` holds undefined nodes.
  bool settle_spelling(std::vector<NodeId>& needs);
  // Settles it without looking at any node, where the caller knows that all sets of characters which the constraint tells
  // apart have so many that tokens spell that the lacking ones are not missed. False: the vocabulary lacks more than that.
  bool settle_as_free();
  // Said before the first matcher: items of some array must differ.
  void uses_unique() { unique_.store(true, std::memory_order_release); }
  bool has_unique() const { return unique_.load(std::memory_order_acquire); }
  void uses_json() { json_.store(true, std::memory_order_relaxed); }
  bool spells_freely() const {
    return vocab_->is_byte_complete() || spells_freely_.load(std::memory_order_acquire);
  }

  RequestPool& idle_requests() { return idle_requests_; }
  Counters& counters() { return counters_; }
  // Bytes that a request's memo of masks may take before it is emptied.
  void set_memo_limit(size_t bytes) { memo_limit_.store(bytes, std::memory_order_relaxed); }
  size_t memo_limit() const { return memo_limit_.load(std::memory_order_relaxed); }

  bool merges() const { return merges_.load(std::memory_order_relaxed); }  // some machine does
  const Machine& machine(MachineId id) const { return *machines_[id]; }
  // The starts of a node, unions flattened. False: some node is not defined yet; it is added to `needs`.
  bool starts(NodeId n, std::vector<Start>& out, std::vector<NodeId>& needs) const;

  // Tokens that the cheapest text of a node takes by the witnesses of the machines; see cost.cc.
  uint32_t node_cost(NodeId n, CostUnit unit) const { return node(n).cost[static_cast<size_t>(unit)].load(std::memory_order_acquire); }
  // Settles node_cost for all nodes reachable from a node. False: `needs` holds undefined nodes.
  // Of a control state only what its witness takes.
  bool settle_costs(NodeId root, std::vector<NodeId>& needs, CostUnit unit);
  bool costs_settled(NodeId n, CostUnit unit) const {
    return node(n).settled[static_cast<size_t>(unit)].load(std::memory_order_acquire);
  }

 private:
  struct Node {
    std::atomic<bool> defined{false};
    std::atomic<bool> settled[2]{false, false};  // by CostUnit
    std::atomic<uint32_t> cost[2]{kNoCost, kNoCost};
    std::vector<NodeId> members;  // of a union
    std::unique_ptr<const Control> control;  // of a control state, which has no starts
    bool is_union = false;
    Start start{0, 0};
  };
  const Node& node(NodeId n) const { return nodes_[static_cast<size_t>(n)]; }
  void add_children(NodeId n, std::vector<NodeId>& out) const;
  static constexpr size_t kMaxControls = 1000;
  bool reachable(std::vector<NodeId>& order, std::vector<NodeId>& needs) const;
  bool reachable_undefined(NodeId root, std::vector<NodeId>& order, std::vector<NodeId>& needs, CostUnit unit) const;

  std::shared_ptr<Vocab> vocab_;
  Whitespace whitespace_;
  std::atomic<bool> merges_{false}, json_{false}, unique_{false}, spelling_settled_{false}, spells_freely_{false};
  Control no_control_;  // stands for what was defined as something else
  Counters counters_;
  RequestPool idle_requests_;
  std::atomic<size_t> memo_limit_{size_t{4} << 20};
  StableVector<Node> nodes_;
  StableVector<std::unique_ptr<Machine>> machines_;
  std::mutex cost_mutex_;
};

// The costs of a program's nodes in one unit.
struct NodeCosts {
  const Program& program;
  CostUnit unit;
  uint32_t node_cost(NodeId n) const { return program.node_cost(n, unit); }
};

}  // namespace mw
