#include "threads.h"

#include <algorithm>

namespace mw::lark {

uint32_t Lookaheads::intern(std::vector<Open> open) {
  std::sort(open.begin(), open.end());
  open.erase(std::unique(open.begin(), open.end()), open.end());
  const auto [it, fresh] = index_.try_emplace(open, static_cast<uint32_t>(sets_.size()));
  if (fresh) sets_.push_back(std::move(open));
  return it->second;
}

uint32_t Lookaheads::with(uint32_t set, const Instr& ahead) {
  Open open{ahead.b, {}};
  Closure closure(code_, nullptr, 0, false, open.threads);
  closure.add(static_cast<uint32_t>(ahead.a), 0);
  const bool negative = ahead.b != 0;
  if (closure.matched()) return negative ? kBroken : set;
  if (open.threads.empty()) return negative ? set : kBroken;
  std::sort(open.threads.begin(), open.threads.end());
  auto all = sets_[set];
  all.push_back(std::move(open));
  return intern(std::move(all));
}

uint32_t Lookaheads::step(uint32_t set, uint8_t b) {
  if (set == 0) return 0;
  if (steps_.size() <= set) steps_.resize(sets_.size());
  auto& row = steps_[set];
  if (row.empty()) row.assign(code_.class_count(), kUnknown);
  const uint32_t c = code_.class_of(b);
  if (row[c] == kUnknown) row[c] = make_step(set, b);  // makes no steps of other sets
  return row[c];
}

uint32_t Lookaheads::make_step(uint32_t set, uint8_t b) {
  std::vector<Open> left;
  for (const Open& open : sets_[set]) {
    Open next{open.negative, {}};
    Closure closure(code_, nullptr, 0, false, next.threads);
    closure.step(open.threads, b);
    const bool negative = open.negative != 0;
    if (closure.matched()) {
      if (negative) return kBroken;
    } else if (next.threads.empty()) {
      if (!negative) return kBroken;
    } else {
      std::sort(next.threads.begin(), next.threads.end());
      left.push_back(std::move(next));
    }
  }
  return intern(std::move(left));
}

bool Lookaheads::hold_at_end(uint32_t set) const {
  for (const Open& open : sets_[set]) {
    const bool matched = std::any_of(open.threads.begin(), open.threads.end(), [&](const Thread& t) {
      return t.dag == 0 && code_[t.pc].op == Op::End;
    });
    if (matched == (open.negative != 0)) return false;
  }
  return true;
}

void Closure::put(const Thread& t) {
  if (std::find(out_.begin(), out_.end(), t) == out_.end()) out_.push_back(t);
}

// Closures nest, and each keeps its marks as long as it lives.
std::vector<std::unique_ptr<Closure::Marks>>& Closure::idle_marks() {
  static thread_local std::vector<std::unique_ptr<Marks>> idle;
  return idle;
}

Closure::~Closure() {
  if (marks_) idle_marks().push_back(std::move(marks_));
}

// Whether it was not met before.
bool Closure::meet(const Path& at) {
  if (at.loops != 0 || at.open != 0) return seen_.insert(at).second;
  if (!marks_) {
    auto& idle = idle_marks();
    if (idle.empty()) idle.push_back(std::make_unique<Marks>());
    marks_ = std::move(idle.back());
    idle.pop_back();
    if (++marks_->now == 0) marks_->stamps.clear(), marks_->now = 1;
  }
  auto& stamps = marks_->stamps;
  if (stamps.size() <= at.pc) stamps.resize(code_.size(), 0);
  if (stamps[at.pc] == marks_->now) return false;
  stamps[at.pc] = marks_->now;
  return true;
}

bool Closure::add(uint32_t pc, uint32_t open) {
  stack_.push_back({pc, 0, open});
  while (!stack_.empty()) {
    const Path at = stack_.back();
    stack_.pop_back();
    if (!code_.hopeful(at.pc) || !meet(at)) continue;
    go(at);
    if (matched_ && cut_) {
      stack_.clear();
      return false;
    }
  }
  return true;
}

void Closure::go(const Path& at) {
  const Instr& i = code_[at.pc];
  const auto to = [&](int32_t pc, uint64_t loops, uint32_t open) { stack_.push_back({static_cast<uint32_t>(pc), loops, open}); };
  const auto next = static_cast<int32_t>(at.pc + 1);
  switch (i.op) {
    case Op::Char:
    case Op::End: put({at.pc, 0, at.open}); break;
    case Op::Match:
      if (at.open == 0) matched_ = true;
      put({at.pc, 0, at.open});
      break;
    case Op::Split:  // the stack gives back the last first
      to(i.b, at.loops, at.open);
      to(i.a, at.loops, at.open);
      break;
    case Op::Begin:
      if (begin_) to(next, at.loops, at.open);
      break;
    case Op::Jump: to(i.a, at.loops, at.open); break;
    case Op::LoopIn: to(next, at.loops | (uint64_t{1} << i.a), at.open); break;
    case Op::LoopEnd: {
      const uint64_t bit = uint64_t{1} << i.a;
      if (at.loops & bit) to(i.b, at.loops & ~bit, at.open);
      else to(next, at.loops, at.open);
      break;
    }
    case Op::Ahead: {
      const uint32_t open = aheads_->with(at.open, i);
      if (open != Lookaheads::kBroken) to(next, at.loops, open);
      break;
    }
    case Op::Behind:
      if ((((behind_ >> i.a) & 1) != 0) != (i.b != 0)) to(next, at.loops, at.open);
      break;
  }
}

bool Closure::step(const Threads& from, uint8_t b) {
  for (const Thread& t : from) {
    const uint32_t open = aheads_ == nullptr ? 0 : aheads_->step(t.open, b);
    if (open == Lookaheads::kBroken) continue;
    const Op op = code_[t.pc].op;
    if (op == Op::End) continue;
    if (op == Op::Match) {
      if (t.open == 0) continue;  // it had its chance to end the token
      if (open != 0) {
        put({t.pc, 1, open});
        continue;
      }
      matched_ = true;  // at an earlier place, as it turns out
      if (cut_) return false;
      continue;
    }
    const uint32_t n = code_.next(t.dag == 0 ? code_.first(t.pc) : t.dag, b);
    if (n == Utf8Automata::kNone) continue;
    if (n != 0) put({t.pc, n, open});
    else if (!add(t.pc + 1, open)) return false;
  }
  return true;
}

uint64_t step_trackers(const Code& code, Trackers& trackers, uint8_t b) {
  uint64_t matched = 0;
  for (auto& [index, threads] : trackers) {
    Threads from = threads, to;
    Closure start(code, nullptr, 0, false, from);
    start.add(static_cast<uint32_t>(code.behinds()[index]), 0);
    Closure closure(code, nullptr, 0, false, to);
    closure.step(from, b);
    if (closure.matched()) matched |= uint64_t{1} << index;
    std::erase_if(to, [&](const Thread& t) { return code[t.pc].op == Op::Match; });
    std::sort(to.begin(), to.end());
    threads = std::move(to);
  }
  return matched;
}

void keep_trackers(const Code& code, Trackers& trackers, uint64_t asks) {
  std::erase_if(trackers, [&](const auto& t) { return ((asks >> t.first) & 1) == 0; });
  for (uint32_t i = 0; i < code.behinds().size(); ++i)
    if ((asks >> i) & 1) trackers.try_emplace(i);
}

}  // namespace mw::lark
