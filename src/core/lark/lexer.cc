#include "lexer.h"

#include <algorithm>

namespace mw::lark {

Lexer::Lexer(Code code, Kind kind, std::vector<LexerStart> starts, std::vector<bool> ignored)
    : code_(std::move(code)), kind_(kind), starts_(std::move(starts)), ignored_(std::move(ignored)), aheads_(code_) {
  for (auto& memo : start_memo_) memo.assign(starts_.size(), kUnknown);
  intern(Key{});       // 0 = dead
  intern(GuardKey{});  // 0 = free
  intern(std::vector<Guard>{});
}

namespace {

uint64_t hash_threads(uint64_t h, const Threads& threads) {
  for (const Thread& t : threads) h = mix(mix(h, uint64_t{t.pc} << 32 | t.dag), t.open);
  return mix(h, threads.size());
}

uint64_t hash_trackers(uint64_t h, const Trackers& trackers) {
  for (const auto& [index, threads] : trackers) h = hash_threads(mix(h, index), threads);
  return h;
}

}  // namespace

size_t Lexer::HashKey::operator()(const Key& key) const {
  uint64_t h = mix(71, uint64_t{key.lexer} << 1 | (key.fresh ? 1u : 0u));
  for (const Threads& list : key.lists) h = hash_threads(h, list);
  return static_cast<size_t>(hash_trackers(hash_threads(h, key.words), key.trackers));
}

size_t Lexer::HashKey::operator()(const GuardKey& key) const {
  return static_cast<size_t>(hash_trackers(mix(hash_threads(72, key.threads), key.open), key.trackers));
}

Lexer::Row Lexer::new_row() const {
  Row row(new std::atomic<uint32_t>[code_.class_count()]);
  for (uint32_t i = 0; i < code_.class_count(); ++i) row[i].store(kUnknown, std::memory_order_relaxed);
  return row;
}

uint64_t Lexer::asks(const Threads& threads) const {
  uint64_t asks = 0;
  for (const Thread& t : threads) asks |= code_.asks(t.pc);
  return asks;
}

LexState Lexer::start(uint32_t lexer, bool begin) {
  begin = begin && code_.is_anchored();
  const std::scoped_lock lock(mutex_);
  LexState& known = start_memo_[begin][lexer];
  if (known == kUnknown) known = start_locked(starts_[lexer].programs, starts_[lexer].words, lexer, begin);
  return known;
}

LexState Lexer::start(const std::vector<uint64_t>& terminals, bool begin) {
  begin = begin && code_.is_anchored();
  const std::scoped_lock lock(mutex_);
  const auto [it, fresh] = subset_memo_[begin].try_emplace(terminals, 0);
  if (!fresh) return it->second;
  Key key;
  key.fresh = true;
  const auto& all = starts_[0].programs;
  for (size_t i = 0; i < all.size(); ++i)
    if ((terminals[i / 64] >> (i % 64)) & 1) {
      const auto [one, unknown] = single_starts_[begin].try_emplace(all[i], 0);
      if (unknown) one->second = start_locked({&all[i], 1}, {}, 0, begin);
      const Key& part = *states_[one->second].key;
      key.lists.insert(key.lists.end(), part.lists.begin(), part.lists.end());
      key.trackers.insert(part.trackers.begin(), part.trackers.end());
    }
  it->second = intern(std::move(key));
  return it->second;
}

LexState Lexer::start_of(Type t) {
  std::vector<uint64_t> one(ignored_.size() / 64 + 1, 0);
  one[t / 64] |= uint64_t{1} << (t % 64);
  return start(one);
}

LexState Lexer::start_locked(std::span<const uint32_t> programs, std::span<const uint32_t> words, uint32_t lexer, bool begin) {
  Key key;
  key.lexer = lexer;
  key.fresh = true;
  uint64_t asked = 0;
  const auto run = [&](std::span<const uint32_t> all, size_t first, size_t last, bool cut) {
    Threads list;
    Closure closure(code_, &aheads_, 0, cut, list);
    if (begin) closure.set_begin();
    for (size_t i = first; i < last; ++i)
      if (!closure.add(all[i], 0)) break;
    asked |= asks(list);
    return list;
  };
  if (kind_ == Kind::First) key.lists.push_back(run(programs, 0, programs.size(), true));
  else
    for (size_t i = 0; i < programs.size(); ++i) key.lists.push_back(run(programs, i, i + 1, true));
  key.words = run(words, 0, words.size(), false);
  keep_trackers(code_, key.trackers, asked);
  return intern(std::move(key));
}

// Lists in which nothing can be read, or end, any more are left out; so are words that no regex is there for.
LexState Lexer::intern(Key key) {
  std::erase_if(key.lists, [&](const Threads& list) {
    return std::none_of(list.begin(), list.end(), [&](const Thread& t) { return code_[t.pc].op == Op::Char || t.dag == 0; });
  });
  if (kind_ != Kind::First) std::sort(key.lists.begin(), key.lists.end());
  if (key.lists.empty()) key = Key{};
  if (key.words.empty()) key.lexer = 0;
  const auto [it, fresh] = state_index_.try_emplace(std::move(key), static_cast<LexState>(states_.size()));
  if (!fresh) return it->second;
  State& state = states_[states_.append()];
  state.row = new_row();
  state.key = &it->first;
  for (const Threads& list : it->first.lists)
    for (const Thread& t : list) {
      state.more = state.more || code_[t.pc].op == Op::Char;
      state.newline = state.newline || (newline_ != kNoType && code_.terminal(t.pc) == newline_);
    }
  find_ends(state, it->first);
  if (it->first.lists.empty())
    for (uint32_t i = 0; i < code_.class_count(); ++i) state.row[i].store(0, std::memory_order_relaxed);
  return it->second;
}

Type Lexer::type_of(const Key& key, Type t) const {
  for (const auto& unless : starts_[key.lexer].unless) {
    if (unless.regex != t) continue;
    for (const Thread& w : key.words)
      if (code_[w.pc].op == Op::Match && static_cast<uint32_t>(code_[w.pc].a) == unless.word) return unless.type;
  }
  return t;
}

void Lexer::find_ends(State& state, const Key& key) {
  for (const Threads& list : key.lists)
    for (size_t i = 0; i < list.size(); ++i) {
      if (code_[list[i].pc].op != Op::Match || list[i].dag != 0) continue;
      const auto plain = static_cast<Type>(code_[list[i].pc].a);
      const bool ignored = ignored_[plain];
      GuardKey guard{Threads(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i)), list[i].open, key.trackers};
      const Guard g = intern(std::move(guard));
      if (!is_possible(g)) continue;
      if (guards_[g].ended == kNoType) {
        guards_[g].ended = plain;
        guards_[g].longer = i > 0 ? code_.terminal(list[0].pc) : plain;
      }
      if (kind_ == Kind::First) state.ends.push_back({ignored ? plain : type_of(key, plain), g, ignored, !ignored});
      else if (kind_ == Kind::Each) state.ends.push_back({plain, g, ignored, true});
      else state.ends.push_back({plain, kFree, false, true});
      if (kind_ == Kind::Every && ignored) state.ends.push_back({plain, g, true, false});
    }
}

// Where terminals are read by themselves, from what is known of each.
LexState Lexer::make_next_of_parts(LexState s, uint32_t c) {
  std::vector<LexState> to;
  for (const LexState part : parts(s))
    if (const LexState n = next(part, code_.byte_of(c)); n != 0) to.push_back(n);
  const std::scoped_lock lock(mutex_);
  Key key;
  for (const LexState n : to) key.lists.insert(key.lists.end(), states_[n].key->lists.begin(), states_[n].key->lists.end());
  const LexState made = key.lists.empty() ? 0 : intern(std::move(key));
  states_[s].row[c].store(made, std::memory_order_release);
  return made;
}

// Most bytes are read by no thread.
bool Lexer::may_read(const Threads& list, uint8_t b) const {
  return std::any_of(list.begin(), list.end(), [&](const Thread& t) {
    if (code_[t.pc].op != Op::Char) return t.open != 0;
    return code_.next(t.dag == 0 ? code_.first(t.pc) : t.dag, b) != Utf8Automata::kNone;
  });
}

LexState Lexer::make_next(LexState s, uint32_t c) {
  if (kind_ != Kind::First && states_[s].key->lists.size() > 1 && states_[s].key->trackers.empty()) return make_next_of_parts(s, c);
  const std::scoped_lock lock(mutex_);
  std::atomic<uint32_t>& slot = states_[s].row[c];
  if (const uint32_t known = slot.load(std::memory_order_relaxed); known != kUnknown) return known;
  const Key& from = *states_[s].key;
  const uint8_t b = code_.byte_of(c);
  if (std::none_of(from.lists.begin(), from.lists.end(), [&](const Threads& list) { return may_read(list, b); })) {
    slot.store(0, std::memory_order_release);
    return 0;
  }
  Key to;
  to.lexer = from.lexer;
  to.trackers = from.trackers;
  const uint64_t behind = step_trackers(code_, to.trackers, b);
  uint64_t asked = 0;
  for (const Threads& list : from.lists) {
    Threads out;
    Closure closure(code_, &aheads_, behind, true, out);
    closure.step(list, b);
    if (out.empty()) continue;
    asked |= asks(out);
    to.lists.push_back(std::move(out));
  }
  if (to.lists.empty()) {
    slot.store(0, std::memory_order_release);
    return 0;
  }
  if (!from.words.empty()) Closure(code_, &aheads_, 0, false, to.words).step(from.words, b);
  keep_trackers(code_, to.trackers, asked);
  const LexState made = intern(std::move(to));
  slot.store(made, std::memory_order_release);
  return made;
}

Guard Lexer::intern(GuardKey key) {
  // Fresh matches with open lookaheads wait like older ones.
  for (Thread& t : key.threads)
    if (code_[t.pc].op == Op::Match) t.dag = 1;
  uint64_t asked = asks(key.threads);
  keep_trackers(code_, key.trackers, asked);
  const auto [it, fresh] = guard_index_.try_emplace(std::move(key), static_cast<Guard>(guards_.size()));
  if (!fresh) return it->second;
  GuardState& state = guards_[guards_.append()];
  state.row = new_row();
  state.key = &it->first;
  state.may_end = aheads_.hold_at_end(it->first.open);
  for (const Thread& t : it->first.threads)
    if (code_[t.pc].op == Op::Match && aheads_.hold_at_end(t.open)) state.may_end = false;
  if (it->second == kFree)
    for (uint32_t i = 0; i < code_.class_count(); ++i) state.row[i].store(kFree, std::memory_order_relaxed);
  return it->second;
}

Guard Lexer::make_next_guard(Guard g, uint32_t c) {
  const std::scoped_lock lock(mutex_);
  return step_guard(g, c);
}

// With lookaheads a better match and the longer one may together leave no text at all. A text does not end within a character.
bool Lexer::is_possible(Guard g) {
  if (guards_[g].possible >= 0) return guards_[g].possible != 0;
  using At = std::pair<Guard, uint32_t>;  // and where in a character, of those that texts may have; 0 = between two
  std::vector<At> work{{g, 0}};
  std::map<At, bool> seen{{work[0], true}};
  bool possible = false;
  for (size_t i = 0; i < work.size() && !possible; ++i) {
    const auto [at, left] = work[i];
    possible = at == kFree || (left == 0 && guards_[at].may_end);
    for (int b = 0; b < 256 && !possible; ++b) {
      const uint32_t inside = code_.utf8().next(left == 0 ? code_.any() : left, static_cast<uint8_t>(b));
      if (inside == Utf8Automata::kNone) continue;
      const At made{step_guard(at, code_.class_of(static_cast<uint8_t>(b))), inside};
      if (made.first != kVoid && seen.try_emplace(made, true).second) work.push_back(made);
    }
  }
  guards_[g].possible = possible ? 1 : 0;
  return possible;
}

// The lock is held.
Guard Lexer::step_guard(Guard g, uint32_t c) {
  std::atomic<uint32_t>& slot = guards_[g].row[c];
  if (const uint32_t known = slot.load(std::memory_order_relaxed); known != kUnknown) return known;
  const GuardKey& from = *guards_[g].key;
  const uint8_t b = code_.byte_of(c);
  if (from.open == 0 && !may_read(from.threads, b)) {
    slot.store(kFree, std::memory_order_release);
    return kFree;
  }
  GuardKey to;
  to.trackers = from.trackers;
  const uint64_t behind = step_trackers(code_, to.trackers, b);
  Closure closure(code_, &aheads_, behind, true, to.threads);
  closure.step(from.threads, b);
  to.open = aheads_.step(from.open, b);
  const bool broken = to.open == Lookaheads::kBroken || closure.matched();
  const Guard made = broken ? kVoid : intern(std::move(to));
  if (made != kVoid && guards_[made].ended == kNoType) {
    guards_[made].ended = guards_[g].ended;
    guards_[made].longer = guards_[g].longer;
  }
  slot.store(made, std::memory_order_release);
  return made;
}

// Whether every text that breaks b breaks a. The lock is held.
bool Lexer::implies(Guard a, Guard b) {
  if (const auto hit = implies_.find({a, b}); hit != implies_.end()) return hit->second;
  const bool found = find_implies(a, b);
  implies_.emplace(std::pair{a, b}, found);
  return found;
}

// Both automata side by side; where that takes too long, no.
bool Lexer::find_implies(Guard a, Guard b) {
  constexpr size_t kMaxPairs = 256;
  std::vector<std::pair<Guard, Guard>> work{{a, b}};
  for (size_t i = 0; i < work.size(); ++i) {
    const auto [x, y] = work[i];
    if (work.size() > kMaxPairs || (guards_[x].may_end && !guards_[y].may_end)) return false;
    for (uint32_t c = 0; c < code_.class_count(); ++c) {
      const Guard x_next = step_guard(x, c), y_next = step_guard(y, c);
      if (x_next == kVoid || y_next == kFree || x_next == y_next) continue;
      if (x_next == kFree || y_next == kVoid) return false;
      if (std::find(work.begin(), work.end(), std::pair{x_next, y_next}) == work.end()) work.push_back({x_next, y_next});
    }
  }
  return true;
}

// Guards that others imply are left out: sets that forbid the same would be many.
Guards Lexer::intern(std::vector<Guard> members) {
  for (size_t i = 0; members.size() > 1 && i < members.size();) {
    const bool implied = std::any_of(members.begin(), members.end(), [&](Guard m) { return m != members[i] && implies(m, members[i]); });
    if (implied) members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
    else ++i;
  }
  const auto [it, fresh] = set_index_.try_emplace(std::move(members), static_cast<Guards>(sets_.size()));
  if (!fresh) return it->second;
  GuardSet& set = sets_[sets_.append()];
  set.row = new_row();
  set.members = it->first;
  for (const Guard g : set.members) set.may_end = set.may_end && guards_[g].may_end;
  return it->second;
}

Guards Lexer::make_next_guards(Guards s, uint32_t c) {
  std::vector<Guard> to;
  const uint8_t b = code_.byte_of(c);
  bool broken = false;
  for (const Guard g : sets_[s].members) {
    const Guard n = next_guard(g, b);
    broken = broken || n == kVoid;
    if (n != kFree) to.push_back(n);
  }
  std::sort(to.begin(), to.end());
  to.erase(std::unique(to.begin(), to.end()), to.end());
  const std::scoped_lock lock(mutex_);
  const Guards made = broken ? kVoidGuards : intern(std::move(to));
  sets_[s].row[c].store(made, std::memory_order_release);
  return made;
}

Guards Lexer::with(Guards s, Guard g) {
  if (g == kFree) return s;
  const std::scoped_lock lock(mutex_);
  const auto [it, fresh] = with_.try_emplace({s, g}, s);
  if (fresh) {
    std::vector<Guard> members = sets_[s].members;
    members.push_back(g);
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    it->second = intern(std::move(members));
  }
  return it->second;
}

std::pair<Type, Type> Lexer::most_guarded() const {
  std::map<std::pair<Type, Type>, size_t> counts;
  for (size_t s = 0; s < sets_.size(); ++s)
    for (const Guard g : sets_[static_cast<uint32_t>(s)].members) ++counts[{guards_[g].ended, guards_[g].longer}];
  std::pair<Type, Type> found{kNoType, kNoType};
  size_t most = 0;
  for (const auto& [pair, count] : counts)
    if (count > most && pair.first != kNoType) {
      most = count;
      found = pair;
    }
  return found;
}

// Strongly connected states may come to the same; the others to what those behind them may come to, and their own ends
// (Tarjan 1972).
class Lexer::Reaches {
 public:
  explicit Reaches(Lexer& lexer) : lexer_(lexer) {}
  void find(LexState s) {
    enter(s);
    while (!frames_.empty()) {
      Frame& at = frames_.back();
      if (at.c == lexer_.code_.class_count()) {
        leave();
        continue;
      }
      const LexState to = lexer_.next(at.q, lexer_.code_.byte_of(at.c++));
      if (to == at.last || to == 0) continue;
      at.last = to;
      if (lexer_.states_[to].reach.load(std::memory_order_acquire) != nullptr) continue;
      const auto seen = notes_.find(to);
      if (seen == notes_.end()) enter(to);
      else if (seen->second.open) at.note->low = std::min(at.note->low, seen->second.index);
    }
  }

 private:
  struct Note {
    uint32_t index, low;
    bool open;
  };
  struct Frame {
    LexState q;
    Note* note;
    uint32_t c;
    LexState last;
  };
  void enter(LexState q) {
    const auto n = static_cast<uint32_t>(notes_.size());
    Note& note = notes_.emplace(q, Note{n, n, true}).first->second;
    open_.push_back(q);
    frames_.push_back({q, &note, 0, 0});
  }
  void leave() {
    const Frame done = frames_.back();
    frames_.pop_back();
    if (!frames_.empty()) frames_.back().note->low = std::min(frames_.back().note->low, done.note->low);
    if (done.note->low != done.note->index) return;
    const auto first = std::find(open_.rbegin(), open_.rend(), done.q).base() - 1;
    const std::vector<LexState> component(first, open_.end());
    open_.erase(first, open_.end());
    for (const LexState q : component) notes_.find(q)->second.open = false;
    lexer_.publish(component, united(component));
  }
  Reach united(const std::vector<LexState>& component) const {
    Reach made;
    std::vector<bool> had(lexer_.ignored_.size(), false);
    const auto add = [&](Type t) {
      if (!had[t]) made.types.push_back(t);
      had[t] = true;
    };
    for (const LexState q : component)
      for (const TokenEnd& e : lexer_.ends(q)) {
        made.passes = made.passes || e.ignore;
        made.passes_freely = made.passes_freely || (e.ignore && lexer_.frees(e.guard));
        made.newline = made.newline || (e.feed && e.type == lexer_.newline_);
        if (e.feed) add(e.type);
      }
    for (const LexState q : component) {
      const Reach* last = nullptr;
      for (uint32_t c = 0; c < lexer_.code_.class_count(); ++c) {
        const LexState to = lexer_.next(q, lexer_.code_.byte_of(c));
        const Reach* behind = to == 0 ? nullptr : lexer_.states_[to].reach.load(std::memory_order_acquire);
        if (behind == nullptr || behind == last) continue;  // dead, of this component, or as before
        last = behind;
        made.passes = made.passes || behind->passes;
        made.passes_freely = made.passes_freely || behind->passes_freely;
        made.newline = made.newline || behind->newline;
        for (const Type t : behind->types) add(t);
      }
    }
    return made;
  }

  Lexer& lexer_;
  std::unordered_map<LexState, Note> notes_;  // node-based: frames point into it
  std::vector<Frame> frames_;
  std::vector<LexState> open_;
};

// Whether ignored text that ends so leaves nothing to be seen to behind it.
bool Lexer::frees(Guard g) {
  if (rest_byte_ < 0) return false;
  return next_guard(g, static_cast<uint8_t>(rest_byte_)) == kFree || std::find(checked_.begin(), checked_.end(), g) != checked_.end();
}

const Lexer::Reach* Lexer::publish(std::span<const LexState> states, Reach made) {
  std::vector<Type> sorted = made.types;
  std::sort(sorted.begin(), sorted.end());
  const int flags = (made.passes ? 1 : 0) + (made.passes_freely ? 2 : 0) + (made.newline ? 4 : 0);
  const std::scoped_lock lock(mutex_);
  const auto [it, fresh] = reach_index_.try_emplace({std::move(sorted), flags}, nullptr);
  if (fresh) it->second = &reaches_.emplace_back(std::move(made));
  for (const LexState q : states)
    if (states_[q].reach.load(std::memory_order_relaxed) == nullptr) states_[q].reach.store(it->second, std::memory_order_release);
  return it->second;
}

const Lexer::Reach& Lexer::make_reach(LexState s) {
  Reaches(*this).find(s);
  return *states_[s].reach.load(std::memory_order_acquire);
}

const std::vector<LexState>& Lexer::make_parts(LexState s) {
  const std::scoped_lock lock(mutex_);
  auto& slot = states_[s].parts;
  if (const auto* known = slot.load(std::memory_order_relaxed); known != nullptr) return *known;
  std::vector<LexState> made;
  const Key& key = *states_[s].key;
  if (kind_ == Kind::First || key.lists.size() < 2) made.push_back(s);
  else
    for (const Threads& list : key.lists) {
      Key part;
      part.lists.push_back(list);
      part.trackers = key.trackers;
      part.fresh = key.fresh;
      keep_trackers(code_, part.trackers, asks(list));
      made.push_back(intern(std::move(part)));
    }
  const auto& kept = parts_.emplace_back(std::move(made));
  slot.store(&kept, std::memory_order_release);
  return kept;
}

}  // namespace mw::lark
