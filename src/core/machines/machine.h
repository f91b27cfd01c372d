// Machines: the byte recognisers that configurations are made of.
//
// A state is one 64-bit word that is cursor, count and phase at once; what does not fit is a handle to a record interned
// in the request. Machines are immutable once defined and shared by all requests over a compiled constraint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../vocab.h"

namespace mw {

class Request;
class Walker;
class KeyMachine;
class UniqueItems;

using State = uint64_t;
using MachineId = uint32_t;
using RestId = uint32_t;
using NodeId = int32_t;

inline constexpr State kDead = ~State{0};
inline constexpr NodeId kNoChild = -1;
// One position: a machine, its state, and the interned set of frames to return to.
struct Item {
  State state;
  MachineId machine;
  RestId rest;
  bool operator==(const Item&) const = default;
  auto operator<=>(const Item&) const = default;
};

// What a machine offers in a state without reading a byte.
struct Accept {
  bool pop = false;        // its value may end here,
  bool split = false;      // or it goes on in several states at once: Machine::branches,
  uint32_t value = 0;      // handing this to the parent (one constant for plain grammars)
  NodeId push = kNoChild;  // or a child begins here,
  uint32_t given = 0;      // which is told this (0 = nothing): Machine::enter,
  State resume = kDead;    // and after which it goes on in this state
  bool jump = false;       // or it goes on without a byte; see Machine::jump
};

// How a search over the ways to the end of a text sees states.
struct Forget {
  uint64_t horizon;  // of larger counts, some steps may be left out or repeated,
  bool costs;        // unless they are counted
};

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  virtual State next(Request& r, State s, uint8_t b) const = 0;
  virtual Accept accept(Request& r, State s) const = 0;
  // Whether some byte may follow inside the machine.
  virtual bool more(Request& r, State s) const = 0;
  // Where accept() says split: the states in which it goes on without reading a byte.
  virtual void branches(Request&, State, std::vector<State>& /*out*/) const {}
  // A start of a node that was pushed with something given; kDead where there is nothing to read then.
  virtual State enter(Request&, State start, uint32_t /*given*/) const { return start; }
  // Goes on after a child that returned a value.
  virtual State resume(Request&, State s, uint32_t /*value*/) const { return s; }

  // The bytes that may follow, at most out.size() of them; -1 = too many to list.
  virtual int candidates(Request&, State, std::span<uint8_t>) const { return -1; }
  // Adds to the mask what a base knows about this state; false = none applies, walk byte by byte.
  virtual bool walk_base(Walker&, TrieNode, const Item&) const { return false; }
  // Whether walk_base would pay at a node with many descendants.
  virtual bool has_base(Request&, State) const { return false; }

  // Tokens that a witness needs from here to the machine's end, children included.
  virtual uint32_t cost(Request& r, State s) const = 0;

  // A state that the same bytes finish, among few: drops what does not matter to a search for the end (spelling.cc).
  virtual State forget(Request&, State s, const Forget&) const { return s; }

  // Where it goes on without a byte: items that can read one. For machines that keep stacks of their own.
  virtual void jump(Request&, const Item&, std::vector<Item>&) const {}
  // Whether sets of items should be handed to merge(), which makes one of those that together are one.
  virtual bool merges() const { return false; }
  virtual void merge(Request&, std::vector<Item>&) const {}
  // Whether tokens can finish the text from here, 1 or 0, where the machine knows it by itself; see spelling.h.
  virtual int spelled(Request&, State) const { return -1; }

  // The nodes whose costs its own takes: those that may be pushed, or the first control state (control.h).
  virtual void children(std::vector<NodeId>&) const {}
  // The machine itself, where it reads keys that must differ.
  virtual const KeyMachine* key() const { return nullptr; }
  // Of an array whose items must differ (uniqueness.h). `open_item`: a walk that records nothing has begun an item behind
  // the one that was being written when it started.
  virtual const UniqueItems* unique() const { return nullptr; }
  virtual bool open_item(State) const { return false; }
  // Whether the value can still become one of infinitely many, whatever its members are that have begun. Only certain if
  // true; asked for only where items must differ.
  virtual bool endless(Request&, State) const { return false; }

  MachineId id = 0;
};

// What a machine remembers in one request.
class MachineMemory {
 public:
  MachineMemory() = default;
  MachineMemory(const MachineMemory&) = delete;
  MachineMemory& operator=(const MachineMemory&) = delete;
  virtual ~MachineMemory() = default;
};

}  // namespace mw
