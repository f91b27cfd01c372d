#include "regex_dfa.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <vector>

#include "char_decoder.h"
#include "regex_expr.h"
#include "regex_live.h"

namespace mw {

namespace {

constexpr uint32_t kUnknown = 0xffffffff;  // a transition not computed yet
constexpr uint32_t kMaxDense = 256;        // classes with a plain row; the rare others live in pages
constexpr uint32_t kPage = 64;
constexpr uint32_t kFirstChunk = 16;       // chunk k holds kFirstChunk << k states
constexpr size_t kMaxChunks = 28;

using Cell = std::atomic<uint32_t>;

enum Flag : uint8_t { kNoAnswer, kNo, kYes };

struct State {
  ExprId expr = kEmptyExpr;
  bool accepting = false;
  int64_t min_len = 0;
  int64_t max_len = 0;
  std::atomic<uint8_t> other_live{kNoAnswer};  // any live transition on a code point >= 0x80
  std::atomic<uint8_t> total{kNoAnswer};       // see is_total
  std::atomic<bool> has_widest{false};
  Chain widest;                                // written once, before has_widest
  std::unique_ptr<std::atomic<Cell*>[]> pages; // classes >= kMaxDense
};

struct Chunk {
  std::unique_ptr<State[]> states;
  std::unique_ptr<Cell[]> rows;
};

void set_unknown(Cell* cells, size_t n) {
  for (size_t i = 0; i < n; ++i) cells[i].store(kUnknown, std::memory_order_relaxed);
}

}  // namespace

// States and rows live in chunks that never move: a reader needs no lock once a number reached it through an
// acquiring load of a transition.
struct RegexDfa::Impl {
  explicit Impl(RegexSource source)
      : partition(std::move(source.partition)),
        pool(std::move(source.pool)),
        live(*pool, partition->size()),
        root(source.root),
        wide(pool->is_wide()),
        n_dense(std::min(partition->size(), kMaxDense)) {
    add_state(kEmptyExpr);
  }

  struct Place {
    Chunk* chunk;
    uint32_t offset;
  };
  Place place(DfaState s) const {
    const uint32_t i = s + kFirstChunk;
    const auto k = static_cast<uint32_t>(std::bit_width(i)) - static_cast<uint32_t>(std::bit_width(kFirstChunk));
    return {view[k].load(std::memory_order_acquire), i - (kFirstChunk << k)};
  }
  State& state(DfaState s) const {
    const Place p = place(s);
    return p.chunk->states[p.offset];
  }
  DfaState step(DfaState s, uint32_t cls);

  Cell& cell(DfaState s, uint32_t cls);  // under the mutex
  DfaState create(DfaState s, uint32_t cls);
  DfaState state_of(ExprId e);           // under the mutex; 0 when the language is empty
  DfaState add_state(ExprId e);          // under the mutex
  void add_chunk(size_t k);
  Chain find_widest(DfaState s);
  uint32_t other_successor(DfaState s);

  std::mutex mutex;
  std::unique_ptr<CharPartition> partition;
  std::unique_ptr<ExprPool> pool;
  LiveSearch live;
  ExprId root;
  bool wide;
  uint32_t n_dense;
  std::array<Chunk, kMaxChunks> chunks;
  std::array<std::atomic<Chunk*>, kMaxChunks> view{};
  std::vector<std::unique_ptr<Cell[]>> pages;
  std::vector<DfaState> state_of_expr;  // kUnknown = none yet
  std::atomic<uint32_t> n_states{0};
  std::atomic<uint32_t> first{kUnknown};
};

// ---- creation -------------------------------------------------------------------------------------------

void RegexDfa::Impl::add_chunk(size_t k) {
  const size_t n = size_t{kFirstChunk} << k;
  chunks[k].states = std::make_unique<State[]>(n);
  chunks[k].rows = std::make_unique<Cell[]>(n * n_dense);
  set_unknown(chunks[k].rows.get(), n * n_dense);
  view[k].store(&chunks[k], std::memory_order_release);
}

DfaState RegexDfa::Impl::add_state(ExprId e) {
  const DfaState s = n_states.load(std::memory_order_relaxed);
  const uint32_t i = s + kFirstChunk;
  if (std::has_single_bit(i)) add_chunk(static_cast<size_t>(std::countr_zero(i / kFirstChunk)));
  State& st = state(s);
  const Expr& x = (*pool)[e];
  st.expr = e;
  st.accepting = x.nullable;
  st.min_len = x.min_len;
  st.max_len = x.max_len == kInfinite ? -1 : x.max_len;
  if (partition->size() > n_dense) {
    const size_t n = (partition->size() - n_dense + kPage - 1) / kPage;
    st.pages = std::make_unique<std::atomic<Cell*>[]>(n);
  }
  if (e >= state_of_expr.size()) state_of_expr.resize(pool->size() + pool->size() / 2, kUnknown);
  state_of_expr[e] = s;
  n_states.store(s + 1, std::memory_order_release);
  return s;
}

DfaState RegexDfa::Impl::state_of(ExprId e) {
  if (e < state_of_expr.size() && state_of_expr[e] != kUnknown) return state_of_expr[e];
  if (live.decide(e) == Life::kDead) return 0;
  return add_state(e);
}

Cell& RegexDfa::Impl::cell(DfaState s, uint32_t cls) {
  const Place p = place(s);
  if (cls < n_dense) return p.chunk->rows[size_t{p.offset} * n_dense + cls];
  std::atomic<Cell*>& page = p.chunk->states[p.offset].pages[(cls - n_dense) / kPage];
  Cell* cells = page.load(std::memory_order_relaxed);
  if (cells == nullptr) {
    pages.push_back(std::make_unique<Cell[]>(kPage));
    cells = pages.back().get();
    set_unknown(cells, kPage);
    page.store(cells, std::memory_order_release);
  }
  return cells[(cls - n_dense) % kPage];
}

DfaState RegexDfa::Impl::create(DfaState s, uint32_t cls) {
  const std::lock_guard lock(mutex);
  Cell& c = cell(s, cls);
  DfaState to = c.load(std::memory_order_relaxed);
  if (to == kUnknown) {
    to = state_of(live.derivative(state(s).expr, cls));
    c.store(to, std::memory_order_release);
  }
  return to;
}

// ---- reading --------------------------------------------------------------------------------------------

DfaState RegexDfa::Impl::step(DfaState s, uint32_t cls) {
  if (s == 0 || cls == kNoClass) return 0;
  const Place p = place(s);
  uint32_t to = kUnknown;
  if (cls < n_dense) {
    to = p.chunk->rows[size_t{p.offset} * n_dense + cls].load(std::memory_order_acquire);
  } else {
    const uint32_t i = cls - n_dense;
    const Cell* page = p.chunk->states[p.offset].pages[i / kPage].load(std::memory_order_acquire);
    if (page != nullptr) to = page[i % kPage].load(std::memory_order_acquire);
  }
  return to != kUnknown ? to : create(s, cls);
}

// The successor all code points >= 0x80 agree on; kUnknown when they do not.
uint32_t RegexDfa::Impl::other_successor(DfaState s) {
  uint32_t all = kUnknown;
  for (const uint32_t cls : partition->other_classes()) {
    const DfaState to = step(s, cls);
    if (all != kUnknown && all != to) return kUnknown;
    all = to;
  }
  return all;
}

Chain RegexDfa::Impl::find_widest(DfaState s) {
  std::vector<Chain> by_successor;
  const auto masks = partition->ascii_masks();
  for (uint32_t cls = 0; cls < masks.size(); ++cls) {
    const DfaState to = step(s, cls);
    if (to == 0) continue;
    const auto same = [&](const Chain& c) { return c.next == to; };
    auto it = std::find_if(by_successor.begin(), by_successor.end(), same);
    if (it == by_successor.end()) it = by_successor.insert(it, Chain{{}, to, {}});
    it->set.lo |= masks[cls].lo;
    it->set.hi |= masks[cls].hi;
  }
  const uint32_t other = other_successor(s);
  if (other != kUnknown && other != 0) {
    const auto same = [&](const Chain& c) { return c.next == other; };
    auto it = std::find_if(by_successor.begin(), by_successor.end(), same);
    if (it == by_successor.end()) it = by_successor.insert(it, Chain{{}, other, {}});
    it->set.other = true;
  }
  const auto smaller = [](const Chain& x, const Chain& y) {
    const int nx = std::popcount(x.set.lo) + std::popcount(x.set.hi);
    const int ny = std::popcount(y.set.lo) + std::popcount(y.set.hi);
    return nx != ny ? nx < ny : x.set.other < y.set.other;
  };
  const auto best = std::max_element(by_successor.begin(), by_successor.end(), smaller);
  if (best == by_successor.end()) return {};
  if (other == kUnknown)
    partition->each_segment_from(0x80, [&](uint32_t first, uint32_t last, uint32_t cls) {
      if (cls == kNoClass || step(s, cls) != best->next) return;
      if (!best->others.empty() && best->others.back().second + 1 == first) best->others.back().second = last;
      else best->others.emplace_back(first, last);
    });
  return *best;
}

// ---- interface ------------------------------------------------------------------------------------------

RegexDfa::RegexDfa(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RegexDfa::~RegexDfa() = default;

std::shared_ptr<RegexDfa> RegexDfa::from_program(std::span<const int64_t> rpn, std::string* error) {
  RegexSource source;
  if (!read_program(rpn, source, error)) return nullptr;
  return std::shared_ptr<RegexDfa>(new RegexDfa(std::make_unique<Impl>(std::move(source))));
}

DfaState RegexDfa::start() const {
  DfaState s = impl_->first.load(std::memory_order_acquire);
  if (s == kUnknown) {
    const std::lock_guard lock(impl_->mutex);
    s = impl_->state_of(impl_->root);
    impl_->first.store(s, std::memory_order_release);
  }
  return s;
}

DfaState RegexDfa::next(DfaState s, uint32_t code_point) {
  return impl_->step(s, impl_->partition->class_of(code_point));
}

bool RegexDfa::accepting(DfaState s) const { return impl_->state(s).accepting; }

bool RegexDfa::is_universal(DfaState s) const { return impl_->state(s).expr == kAllExpr; }

bool RegexDfa::is_total(DfaState s) {
  std::atomic<uint8_t>& known = impl_->state(s).total;
  uint8_t answer = known.load(std::memory_order_relaxed);
  if (answer == kNoAnswer) {
    const std::lock_guard lock(impl_->mutex);
    answer = impl_->pool->is_total(impl_->state(s).expr) ? kYes : kNo;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == kYes;
}

DfaState RegexDfa::near(DfaState s, uint32_t code_points) {
  const std::lock_guard lock(impl_->mutex);
  const ExprId e = impl_->state(s).expr;
  const ExprId near = impl_->pool->near(e, code_points);
  return near == e ? s : impl_->state_of(near);
}

DfaState RegexDfa::without_exceptions(DfaState s) {
  const std::lock_guard lock(impl_->mutex);
  const ExprId e = impl_->state(s).expr;
  const ExprId whole = impl_->pool->without_exceptions(e);
  return whole == e ? s : impl_->state_of(whole);
}

int64_t RegexDfa::exception_distance(DfaState s) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->pool->exception_distance(impl_->state(s).expr) - 1;
}

bool RegexDfa::any_live_in(DfaState s, uint32_t lo, uint32_t hi) {
  if (s == 0) return false;
  const CharPartition& partition = *impl_->partition;
  const bool all_others = lo <= 0x80 && hi >= kMaxCodePoint;
  if (!all_others || lo < 0x80) {
    const uint32_t end = all_others ? 0x7f : hi;
    const auto live = [&](uint32_t cls) { return impl_->step(s, cls) != 0; };
    if (lo <= end && partition.any_class_in(lo, end, live)) return true;
    if (!all_others) return false;
  }
  std::atomic<uint8_t>& known = impl_->state(s).other_live;
  uint8_t answer = known.load(std::memory_order_relaxed);
  if (answer == kNoAnswer) {
    const auto classes = partition.other_classes();
    const bool live = std::any_of(classes.begin(), classes.end(), [&](uint32_t c) { return impl_->step(s, c) != 0; });
    answer = live ? kYes : kNo;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == kYes;
}

bool RegexDfa::has_next(DfaState s) {
  if (s == 0 || impl_->state(s).max_len == 0) return false;
  return any_live_in(s, 0, kMaxCodePoint);
}

const Chain& RegexDfa::widest(DfaState s) {
  State& st = impl_->state(s);
  if (!st.has_widest.load(std::memory_order_acquire)) {
    const Chain found = impl_->find_widest(s);
    const std::lock_guard lock(impl_->mutex);
    if (!st.has_widest.load(std::memory_order_relaxed)) {
      st.widest = found;
      st.has_widest.store(true, std::memory_order_release);
    }
  }
  return st.widest;
}

void RegexDfa::live_ascii(DfaState s, uint64_t out[2]) {
  out[0] = out[1] = 0;
  const auto masks = impl_->partition->ascii_masks();
  for (uint32_t cls = 0; cls < masks.size(); ++cls) {
    if (impl_->step(s, cls) == 0) continue;
    out[0] |= masks[cls].lo;
    out[1] |= masks[cls].hi;
  }
}

void RegexDfa::successors(DfaState s, std::vector<Successor>& out) {
  out.clear();
  for (uint32_t cls = 0; cls < impl_->partition->size(); ++cls) {
    const DfaState to = impl_->step(s, cls);
    if (to != 0) out.push_back({impl_->partition->smallest(cls), to, cls});
  }
}

DfaState RegexDfa::uniform_successor(DfaState s, uint32_t lo, uint32_t hi) {
  if (s == 0) return 0;
  DfaState all = 0;
  const bool differ = impl_->partition->any_class_in(lo, hi, [&](uint32_t cls) {
    const DfaState to = impl_->step(s, cls);
    if (to == 0 || (all != 0 && to != all)) return true;
    all = to;
    return false;
  });
  return differ ? 0 : all;
}

void RegexDfa::successors_in(DfaState s, uint32_t lo, uint32_t hi, std::vector<DfaState>& out) {
  out.clear();
  if (s == 0) return;
  impl_->partition->any_class_in(lo, hi, [&](uint32_t cls) {
    const DfaState to = impl_->step(s, cls);
    if (to != 0) out.push_back(to);
    return false;
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

std::vector<RegexDfa::ClassBytes> RegexDfa::class_bytes() const {
  std::vector<ClassBytes> out(impl_->partition->size(), ClassBytes{});
  impl_->partition->each_segment_from(0, [&](uint32_t first, uint32_t last, uint32_t cls) {
    if (cls == kNoClass) return;
    for (uint32_t cp = first; cp <= last && cp < 0x80; ++cp) ++out[cls][json_bytes(cp)];
    for (const uint32_t begin : {0x80u, 0x800u, 0x10000u}) {  // lengths of UTF-8
      const uint32_t end = begin == 0x80 ? 0x7ff : begin == 0x800 ? 0xffff : kMaxCodePoint;
      const uint32_t lo = std::max(first, begin), hi = std::min(last, end);
      if (lo <= hi) out[cls][json_bytes(lo)] += hi - lo + 1;
    }
  });
  return out;
}

void RegexDfa::code_points(uint32_t cls, uint32_t last, std::vector<uint32_t>& out) const {
  out.clear();
  impl_->partition->each_segment_from(0, [&](uint32_t first, uint32_t end, uint32_t its) {
    for (uint32_t cp = first; its == cls && cp <= std::min(end, last); ++cp) out.push_back(cp);
  });
}

int64_t RegexDfa::min_length(DfaState s) const { return impl_->state(s).min_len; }

int64_t RegexDfa::max_length(DfaState s) const { return impl_->state(s).max_len; }

int RegexDfa::is_empty_within(size_t max_states) {
  EmptinessSearch search(*this, max_states);
  search.run(std::chrono::nanoseconds::max());
  return *search.verdict();
}

EmptinessSearch::EmptinessSearch(RegexDfa& dfa, size_t max_states)
    : dfa_(dfa), max_states_(max_states), quest_(std::make_unique<LiveQuest>()) {}
EmptinessSearch::~EmptinessSearch() = default;

void EmptinessSearch::run(std::chrono::nanoseconds slice) {
  const std::lock_guard lock(dfa_.impl_->mutex);
  const Life life = dfa_.impl_->live.pursue(*quest_, dfa_.impl_->root, max_states_, slice);
  if (life != Life::kUnknown) verdict_ = life == Life::kDead ? 1 : 0;
  else if (quest_->expanded >= max_states_) verdict_ = -1;
}

bool RegexDfa::is_wide() const { return impl_->wide; }

size_t RegexDfa::state_count() const { return impl_->n_states.load(std::memory_order_acquire); }

}  // namespace mw
