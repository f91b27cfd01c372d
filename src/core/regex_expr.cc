#include "regex_expr.h"

#include <algorithm>

namespace mw {

namespace {

constexpr uint32_t kNoExpr = 0xffffffff;
// A derivative with more steps than this looks out for parts it met before: long runs of optional parts share
// their tails, and would be walked once for every beginning.
constexpr size_t kManySteps = 256;

int64_t sat_add(int64_t x, int64_t y) {
  int64_t r = 0;
  return __builtin_add_overflow(x, y, &r) ? kInfinite : r;
}

int64_t sat_mul(int64_t x, int64_t y) {
  int64_t r = 0;
  return __builtin_mul_overflow(x, y, &r) ? kInfinite : r;
}

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15U;
  return h ^ (h >> 32);
}

}  // namespace

ExprPool::ExprPool(uint32_t n_classes) : sets_(n_classes), few_classes_(n_classes <= 64), table_(64, kNoExpr) {
  exprs_.reserve(32);
  intern(make(Op::kEmpty, 0, 0, 0, 0), {});
  Expr epsilon = make(Op::kEpsilon, 0, 0, 0, 0);
  epsilon.nullable = true;
  intern(epsilon, {});
  chars(sets_.full());
  repeat(kAnyExpr, 0, kInfinite);
  exprs_[kEmptyExpr].life = Life::kDead;
}

// ---- interning -----------------------------------------------------------------------------------------

Expr ExprPool::make(Op op, uint32_t a, uint32_t b, int64_t lo, int64_t hi) const {
  Expr x;
  x.op = op;
  x.a = a;
  x.b = b;
  x.lo = lo;
  x.hi = hi;
  x.hash = mix(mix(mix(mix(static_cast<uint64_t>(op) + 1, a), b), static_cast<uint64_t>(lo)), static_cast<uint64_t>(hi));
  return x;
}

bool ExprPool::same(const Expr& x, const Expr& y, std::span<const ExprId> members) const {
  if (x.hash != y.hash || x.op != y.op || x.b != y.b) return false;
  if (x.op == Op::kOr || x.op == Op::kAnd) {
    return std::equal(members.begin(), members.end(), pool_.begin() + static_cast<std::ptrdiff_t>(x.a));
  }
  return x.a == y.a && x.lo == y.lo && x.hi == y.hi;
}

ExprId ExprPool::intern(Expr x, std::span<const ExprId> members) {
  size_t mask = table_.size() - 1;
  size_t slot = x.hash & mask;
  for (; table_[slot] != kNoExpr; slot = (slot + 1) & mask) {
    if (same(exprs_[table_[slot]], x, members)) return table_[slot];
  }
  switch (x.op) {
    case Op::kCat: describe_cat(x); break;
    case Op::kOr:
    case Op::kAnd:
      describe_members(x, members);
      x.a = static_cast<uint32_t>(pool_.size());
      pool_.insert(pool_.end(), members.begin(), members.end());
      break;
    case Op::kRepeat: describe_repeat(x); break;
    default: break;
  }
  if (x.nullable || !x.boolean) x.life = Life::kLive;
  const auto id = static_cast<ExprId>(exprs_.size());
  table_[slot] = id;
  exprs_.push_back(x);
  if (exprs_.size() * 2 > table_.size()) grow_table();
  return id;
}

void ExprPool::grow_table() {
  table_.assign(table_.size() * 4, kNoExpr);
  const size_t mask = table_.size() - 1;
  for (ExprId id = 0; id < exprs_.size(); ++id) {
    size_t slot = exprs_[id].hash & mask;
    while (table_[slot] != kNoExpr) slot = (slot + 1) & mask;
    table_[slot] = id;
  }
}

void ExprPool::describe_cat(Expr& x) const {
  const Expr& head = exprs_[x.a];
  const Expr& tail = exprs_[x.b];
  x.nullable = head.nullable && tail.nullable;
  x.alphabet = head.alphabet | tail.alphabet;
  x.boolean = head.boolean || tail.boolean;
  x.first = head.first | (head.nullable ? tail.first : 0);
  x.min_len = sat_add(head.min_len, tail.min_len);
  x.max_len = sat_add(head.max_len, tail.max_len);
  x.reach = std::max(head.reach, tail.reach);
  if (head.life == Life::kLive && tail.life == Life::kLive) x.life = Life::kLive;
}

void ExprPool::describe_members(Expr& x, std::span<const ExprId> members) const {
  const bool all = x.op == Op::kAnd;
  x.nullable = all;
  x.boolean = all;
  x.first = all ? ~uint64_t{0} : 0;
  x.min_len = all ? 0 : kInfinite;
  x.max_len = all ? kInfinite : 0;
  for (const ExprId m : members) {
    const Expr& e = exprs_[m];
    x.nullable = all ? x.nullable && e.nullable : x.nullable || e.nullable;
    x.boolean = x.boolean || e.boolean;
    x.alphabet |= e.alphabet;
    if (!all) x.reach = std::max(x.reach, e.reach);
    if (!all && e.life == Life::kLive) x.life = Life::kLive;
    x.first = all ? x.first & e.first : x.first | e.first;
    x.min_len = all ? std::max(x.min_len, e.min_len) : std::min(x.min_len, e.min_len);
    x.max_len = all ? std::min(x.max_len, e.max_len) : std::max(x.max_len, e.max_len);
  }
}

void ExprPool::describe_repeat(Expr& x) const {
  const Expr& body = exprs_[x.a];
  x.nullable = x.lo == 0;
  x.boolean = body.boolean;
  x.first = body.first;
  x.alphabet = body.alphabet;
  x.min_len = sat_mul(x.lo, body.min_len);
  x.max_len = sat_mul(x.hi, body.max_len);
  const int64_t rounds = x.hi == kInfinite ? x.lo : x.hi;
  x.reach = std::max(body.reach, rounds > 1 ? sat_mul(rounds, std::max<int64_t>(body.min_len, 1)) : 0);
  x.life = body.life;
}

ExprId ExprPool::intern_set(Op op, std::span<const ExprId> sorted) {
  Expr x = make(op, 0, static_cast<uint32_t>(sorted.size()), 0, 0);
  for (const ExprId m : sorted) x.hash = mix(x.hash, m);
  return intern(x, sorted);
}

// ---- leaves, concatenation, counters, complement --------------------------------------------------------

ExprId ExprPool::chars(uint32_t set) {
  if (sets_.empty(set)) return kEmptyExpr;
  Expr x = make(Op::kChars, set, 0, 0, 0);
  x.first = x.alphabet = sets_.mask(set);
  x.min_len = x.max_len = 1;
  return intern(x, {});
}

void ExprPool::numerals(const std::array<uint32_t, 11>& classes) {
  numeral_classes_ = classes;
  for (const uint32_t cls : classes) numeral_mask_ |= uint64_t{1} << (cls & 63);
}

ExprId ExprPool::multiple(const MultipleForm& form, uint64_t remainder) {
  return multiple(MultipleForms::At{forms_.intern(form), remainder});
}

ExprId ExprPool::multiple(MultipleForms::At at) {
  Expr x = make(Op::kMultiple, at.form, 0, static_cast<int64_t>(at.remainder), 0);
  const auto shortest = forms_.shortest(at);
  if (!shortest) return kEmptyExpr;
  x.nullable = forms_.is_complete(at);
  x.first = x.alphabet = numeral_mask_;
  x.min_len = *shortest;
  x.max_len = forms_.longest(at.form);
  return intern(x, {});
}

// All texts over some characters, perhaps but the empty one.
bool ExprPool::is_run(ExprId e) const {
  const Expr& x = exprs_[e];
  return x.op == Op::kRepeat && x.lo <= 1 && x.hi == kInfinite && exprs_[x.a].op == Op::kChars;
}

bool ExprPool::within_run(uint64_t alphabet, ExprId run) const {
  return is_run(run) && (exprs_[run].a == kAnyExpr || (few_classes_ && (alphabet & ~exprs_[run].alphabet) == 0));
}

ExprPool::Counted ExprPool::counted(ExprId e) const {
  const Expr& x = exprs_[e];
  if (x.op == Op::kRepeat) return {x.a, x.lo, x.hi};
  return {e, 1, 1};
}

ExprPool::Linear ExprPool::split(ExprId e) const {
  const Expr& x = exprs_[e];
  if (x.op == Op::kCat) return {x.a, x.b};
  return {e, kEpsilonExpr};
}

ExprId ExprPool::cat(ExprId a, ExprId b) {
  if (is_empty(a) || is_empty(b)) return kEmptyExpr;
  if (a == kEpsilonExpr) return b;
  if (b == kEpsilonExpr) return a;
  if (exprs_[a].op != Op::kCat) return cat_factor(a, b);
  const size_t base = spine_.size();  // cat_factor may come back here
  for (; exprs_[a].op == Op::kCat; a = exprs_[a].b) spine_.push_back(exprs_[a].a);
  ExprId result = cat_factor(a, b);
  for (size_t i = spine_.size(); i-- > base;) result = cat_factor(spine_[i], result);
  spine_.resize(base);
  return result;
}

// head.tail for a head that is not a concatenation; x{a,b}.x{c,d} = x{a+c,b+d}, but x.x stays as it is.
ExprId ExprPool::cat_factor(ExprId head, ExprId tail) {
  if (exprs_[tail].nullable && within_run(exprs_[tail].alphabet, head)) return head;
  if (exprs_[head].nullable && within_run(exprs_[head].alphabet, tail)) return tail;
  while (tail != kEpsilonExpr) {
    const Linear next = split(tail);
    if (exprs_[head].op != Op::kRepeat && exprs_[next.head].op != Op::kRepeat) break;
    const Counted x = counted(head);
    const Counted y = counted(next.head);
    if (x.base != y.base) break;
    int64_t lo = 0;
    if (__builtin_add_overflow(x.lo, y.lo, &lo)) break;
    const bool unlimited = x.hi == kInfinite || y.hi == kInfinite;
    const int64_t hi = sat_add(x.hi, y.hi);
    if (!unlimited && hi == kInfinite) break;
    head = repeat(x.base, lo, hi);
    tail = next.rest;
  }
  return tail == kEpsilonExpr ? head : intern(make(Op::kCat, head, tail, 0, 0), {});
}

ExprId ExprPool::repeat(ExprId e, int64_t lo, int64_t hi) {
  while (true) {
    if (hi == 0 || e == kEpsilonExpr) return kEpsilonExpr;
    if (is_empty(e)) return lo == 0 ? kEpsilonExpr : kEmptyExpr;
    if (exprs_[e].nullable) lo = 0;
    if (hi == 1 && (lo == 1 || exprs_[e].nullable)) return e;
    if (flatten_repeat(e, lo, hi)) continue;
    if (lo == 0 && hi == kInfinite && strip_inner_stars(e)) continue;
    return intern(make(Op::kRepeat, e, 0, lo, hi), {});
  }
}

// (x{a,b}){c,d} = x{ac,bd} when the counts have no gap: the step from k to k + 1 rounds joins when
// (k+1)a <= kb + 1, and c is the hardest k.
bool ExprPool::flatten_repeat(ExprId& e, int64_t& lo, int64_t& hi) const {
  const Expr& x = exprs_[e];
  if (x.op != Op::kRepeat) return false;
  const int64_t reach = sat_add(sat_mul(lo, x.hi), 1);
  if (lo != hi && sat_mul(sat_add(lo, 1), x.lo) > reach) return false;
  const int64_t new_lo = sat_mul(lo, x.lo);
  const int64_t new_hi = sat_mul(hi, x.hi);
  if (new_lo == kInfinite) return false;
  if (new_hi == kInfinite && hi != kInfinite && x.hi != kInfinite) return false;
  e = x.a;
  lo = new_lo;
  hi = new_hi;
  return true;
}

// (x* | y)* = (x | y)*
bool ExprPool::strip_inner_stars(ExprId& e) {
  const Expr x = exprs_[e];
  if (x.op != Op::kOr) return false;
  std::vector<ExprId> members(pool_.begin() + x.a, pool_.begin() + x.a + x.b);
  bool changed = false;
  for (ExprId& m : members) {
    const Expr& y = exprs_[m];
    if (y.op == Op::kRepeat && y.lo <= 1 && y.hi == kInfinite) {
      m = y.a;
      changed = true;
    }
  }
  if (changed) e = any_of(members);
  return changed;
}

ExprId ExprPool::complement(ExprId e) {
  if (is_empty(e)) return kAllExpr;
  if (e == kAllExpr) return kEmptyExpr;
  if (exprs_[e].op == Op::kNot) return exprs_[e].a;
  Expr x = make(Op::kNot, e, 0, 0, 0);
  x.nullable = !exprs_[e].nullable;
  x.boolean = true;
  x.first = x.alphabet = ~uint64_t{0};
  x.min_len = x.nullable ? 0 : 1;
  x.max_len = kInfinite;
  const ExprId id = intern(x, {});
  if (exprs_[e].max_len != kInfinite) exprs_[id].life = Life::kLive;
  return id;
}

// ---- counts ---------------------------------------------------------------------------------------------

ExprId ExprPool::near(ExprId e, int64_t code_points) {
  if (near_within_ != code_points) {
    near_.clear();
    near_within_ = code_points;
  }
  return cut_counts(e, code_points, 0);
}

// A text of n code points goes through at most n / m rounds of a body of m or more, and begins one more: so what is beyond
// that many rounds, and whether the least number is more than that or still more, makes no difference to it. (A body that
// may be empty has no least number.) Intersections and complements stay as they are: there, counts that are out of reach
// decide what can be finished. kDeep is for the stack; what is below stays as it is, too.
ExprId ExprPool::cut_counts(ExprId e, int64_t code_points, int depth) {
  constexpr int kDeep = 100;
  if (exprs_[e].reach <= code_points || depth > kDeep) return e;
  if (const auto known = near_.find(e); known != near_.end()) return known->second;
  const Expr x = exprs_[e];
  const auto cut = [&](ExprId part) { return cut_counts(part, code_points, depth + 1); };
  ExprId out = e;
  if (x.op == Op::kRepeat) {
    const int64_t rounds = code_points / std::max<int64_t>(exprs_[x.a].min_len, 1) + 1;
    const int64_t lo = std::min(x.lo, rounds);
    out = repeat(cut(x.a), lo, x.hi == kInfinite ? kInfinite : std::min(x.hi, rounds));
  } else if (x.op == Op::kOr) {
    std::vector<ExprId> members(pool_.begin() + x.a, pool_.begin() + x.a + x.b);
    for (ExprId& m : members) m = cut(m);
    out = any_of(members);
  } else if (x.op == Op::kCat) {
    std::vector<ExprId> heads;
    ExprId tail = e;
    for (; exprs_[tail].op == Op::kCat; tail = exprs_[tail].b) heads.push_back(exprs_[tail].a);
    out = cut(tail);
    for (size_t i = heads.size(); i-- > 0;) out = cat(cut(heads[i]), out);
  }
  near_.emplace(e, out);
  return out;
}

// Of a finite language, or (`far`) of one without short texts.
bool ExprPool::is_exception(ExprId e, bool far) const {
  constexpr int64_t kFar = 8;
  if (exprs_[e].op != Op::kNot) return false;
  const Expr& body = exprs_[exprs_[e].a];
  return body.max_len != kInfinite || (far && body.min_len >= kFar);
}

int64_t ExprPool::exception_distance(ExprId e) const {
  const Expr& x = exprs_[e];
  if (x.op == Op::kNot) return exprs_[x.a].min_len;
  int64_t least = kInfinite;
  if (x.op == Op::kAnd)
    for (uint32_t i = 0; i < x.b; ++i)
      if (const Expr& m = exprs_[pool_[x.a + i]]; m.op == Op::kNot) least = std::min(least, exprs_[m.a].min_len);
  return least;
}

ExprId ExprPool::without_exceptions(ExprId e) {
  if (is_exception(e, true)) return kAllExpr;
  const Expr x = exprs_[e];
  if (x.op != Op::kAnd) return e;
  const std::vector<ExprId> members(pool_.begin() + x.a, pool_.begin() + x.a + x.b);
  const auto all = [&](bool far) { return std::all_of(members.begin(), members.end(), [&](ExprId m) { return is_exception(m, far); }); };
  if (all(true)) return kAllExpr;
  std::vector<ExprId> rest;
  for (const ExprId m : members)
    if (!is_exception(m, false)) rest.push_back(m);
  return rest.size() == members.size() ? e : all_of(rest);
}

// ---- derivatives ----------------------------------------------------------------------------------------

ExprId ExprPool::derivative(ExprId e, uint32_t cls) {
  if (!starts_with(e, cls)) return kEmptyExpr;
  const size_t pending_base = pending_.size();
  const size_t terms_base = terms_.size();
  pending_.push_back({e, kEpsilonExpr});
  std::unordered_set<uint64_t> seen;
  for (size_t n = 0; pending_.size() > pending_base; ++n) {
    const Pending p = pending_.back();
    pending_.pop_back();
    if (n >= kManySteps && !seen.insert((uint64_t{p.e} << 32) | p.then).second) continue;
    derive_step(p, cls);
  }
  ExprId result = kEmptyExpr;
  if (terms_.size() == terms_base + 1) {
    result = terms_.back();
  } else if (terms_.size() > terms_base) {
    result = any_of(std::span<const ExprId>(terms_).subspan(terms_base));
  }
  terms_.resize(terms_base);
  return result;
}

// One expression: its own linear form goes to terms_, what it consists of to pending_. Parts that cannot begin
// with the class are skipped before their continuation is built.
void ExprPool::derive_step(Pending p, uint32_t cls) {
  const Expr x = exprs_[p.e];
  switch (x.op) {
    case Op::kEmpty:
    case Op::kEpsilon: break;
    case Op::kChars:
      if (sets_.contains(x.a, cls)) terms_.push_back(p.then);
      break;
    case Op::kCat:
      if (exprs_[x.a].nullable && starts_with(x.b, cls)) pending_.push_back({x.b, p.then});
      if (starts_with(x.a, cls)) pending_.push_back({x.a, cat(x.b, p.then)});
      break;
    case Op::kOr:
      for (uint32_t i = 0; i < x.b; ++i) {
        if (starts_with(pool_[x.a + i], cls)) pending_.push_back({pool_[x.a + i], p.then});
      }
      break;
    case Op::kRepeat: {
      // x nullable has lo = 0, so counting a round that matched nothing would add no text.
      const int64_t lo = x.lo == 0 ? 0 : x.lo - 1;
      const int64_t hi = x.hi == kInfinite ? kInfinite : x.hi - 1;
      if (starts_with(x.a, cls)) pending_.push_back({x.a, cat(repeat(x.a, lo, hi), p.then)});
      break;
    }
    case Op::kMultiple: {
      const ExprId d = cat(derive_multiple(x, cls), p.then);
      if (d != kEmptyExpr) terms_.push_back(d);
      break;
    }
    case Op::kAnd:
    case Op::kNot: {
      const ExprId d = cat(derive_boolean(p.e, cls), p.then);
      if (d != kEmptyExpr) terms_.push_back(d);
      break;
    }
  }
}

ExprId ExprPool::derive_multiple(const Expr& x, uint32_t cls) {
  const auto it = std::find(numeral_classes_.begin(), numeral_classes_.end(), cls);
  if (it == numeral_classes_.end()) return kEmptyExpr;
  const MultipleForms::At at{x.a, static_cast<uint64_t>(x.lo)};
  const auto digit = static_cast<uint32_t>(it - numeral_classes_.begin());
  const auto next = digit == 10 ? forms_.read_point(at) : forms_.read_digit(at, digit);
  return next ? multiple(*next) : kEmptyExpr;
}

ExprId ExprPool::derive_boolean(ExprId e, uint32_t cls) {
  const Expr x = exprs_[e];
  if (x.op == Op::kNot) return complement(derivative(x.a, cls));
  std::vector<ExprId> parts;
  parts.reserve(x.b);
  for (uint32_t i = 0; i < x.b; ++i) {
    const ExprId d = derivative(pool_[x.a + i], cls);
    if (is_empty(d)) return kEmptyExpr;
    parts.push_back(d);
  }
  return all_of(parts);
}

bool ExprPool::is_total(ExprId e) const {
  const Expr& x = exprs_[e];
  if (e == kAllExpr) return true;
  if (x.op == Op::kCat) return (x.a == kAllExpr || is_total(x.a)) && !exprs_[x.b].boolean && x.b != kEmptyExpr;
  if (x.op == Op::kRepeat) return !x.boolean && is_total(x.a);
  if (x.op != Op::kOr) return false;
  for (uint32_t i = 0; i < x.b; ++i)
    if (is_total(pool_[x.a + i])) return true;
  return false;
}

}  // namespace mw
