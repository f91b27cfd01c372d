// Lists of threads: what Code is run with, byte by byte.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "code.h"

namespace mw::lark {

// A thread: an instruction (Char or Match; End in obligations), how far it is inside a character (0 = before it), and the
// lookaheads that are still open. A Match with dag = 1 was met before the last byte and waits for its lookaheads.
struct Thread {
  uint32_t pc, dag, open;
  auto operator<=>(const Thread&) const = default;
};
using Threads = std::vector<Thread>;  // in order of preference

// What lookbehinds see: for each that may still be asked, where its program is, started anew before every byte.
using Trackers = std::map<uint32_t, Threads>;

// Open lookaheads, interned. 0 = none. Not thread-safe.
class Lookaheads {
 public:
  static constexpr uint32_t kBroken = 0xffffffffu;
  explicit Lookaheads(const Code& code) : code_(code) { sets_.emplace_back(); index_[{}] = 0; }
  // With one that begins here; kBroken where it fails at once.
  uint32_t with(uint32_t set, const Instr& ahead);
  uint32_t step(uint32_t set, uint8_t b);
  bool hold_at_end(uint32_t set) const;

 private:
  struct Open {
    int32_t negative;
    Threads threads;
    auto operator<=>(const Open&) const = default;
  };
  uint32_t intern(std::vector<Open> open);
  uint32_t make_step(uint32_t set, uint8_t b);
  const Code& code_;
  std::vector<std::vector<uint32_t>> steps_;  // by set, then class of bytes; kUnknown
  static constexpr uint32_t kUnknown = 0xfffffffeu;
  std::vector<std::vector<Open>> sets_;
  std::map<std::vector<Open>, uint32_t> index_;
};

// Follows the instructions that read nothing. One Closure serves one ordered list.
class Closure {
 public:
  // cut: what comes behind a match without open lookaheads does not count.
  Closure(const Code& code, Lookaheads* aheads, uint64_t behind, bool cut, Threads& out)
      : code_(code), aheads_(aheads), behind_(behind), cut_(cut), out_(out) {}
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  ~Closure();
  // Nothing of the text was read yet.
  void set_begin() { begin_ = true; }
  // False: the list is cut here.
  bool add(uint32_t pc, uint32_t open);
  // Reads a byte with each thread of a list, in order.
  bool step(const Threads& from, uint8_t b);
  bool matched() const { return matched_; }  // some Match without open lookaheads was met, now or earlier

 private:
  struct Path {
    uint32_t pc;
    uint64_t loops;  // whose iteration has read nothing so far
    uint32_t open;
    auto operator<=>(const Path&) const = default;
  };
  void go(const Path& at);
  void put(const Thread& t);
  const Code& code_;
  Lookaheads* aheads_;
  uint64_t behind_;
  bool cut_;
  Threads& out_;
  // Instructions met outside of loops and lookaheads: nearly all are.
  struct Marks {
    std::vector<uint32_t> stamps;
    uint32_t now = 0;
  };
  static std::vector<std::unique_ptr<Marks>>& idle_marks();
  bool meet(const Path& at);
  std::vector<Path> stack_;
  std::unique_ptr<Marks> marks_;
  std::set<Path> seen_;  // the others
  bool matched_ = false, begin_ = false;
};

// Reads a byte; the result has a bit for each lookbehind that matches now.
uint64_t step_trackers(const Code& code, Trackers& trackers, uint8_t b);
// The trackers that these threads may ask; new ones start empty.
void keep_trackers(const Code& code, Trackers& trackers, uint64_t asks);

}  // namespace mw::lark
