// Normal forms of unions and intersections (see regex_expr.h).
#include <algorithm>

#include "regex_expr.h"

namespace mw {

namespace {

// Beyond this depth of common prefixes members stay side by side: correct, less shared, bounded recursion.
constexpr int kMaxFactorDepth = 400;
// So they do when looking for prefixes costs more than this: members that are tails of one another have
// prefixes of quadratic length.
constexpr int64_t kFactorWorkPerMember = 800;
constexpr int64_t kMaxFactorWork = 2'000'000;

}  // namespace

struct ExprPool::Union {
  std::vector<Linear> items;
  bool epsilon = false;
  bool all = false;
  bool nullable = false;  // some item is
};

// ---- union ----------------------------------------------------------------------------------------------

ExprId ExprPool::any_of(std::span<const ExprId> members) {
  const int64_t outer = factor_work_;
  factor_work_ = std::min(kFactorWorkPerMember * static_cast<int64_t>(members.size() + 4), kMaxFactorWork);
  const ExprId result = any_of(members, 0);
  factor_work_ = outer;
  return result;
}

ExprId ExprPool::any_of(std::span<const ExprId> members, int depth) {
  if (members.size() == 1) return members[0];
  Union u;
  u.items.reserve(members.size());
  for (const ExprId e : members) add_member(u, e);
  bool changed = true;
  while (changed && !u.all) {
    std::sort(u.items.begin(), u.items.end());
    u.items.erase(std::unique(u.items.begin(), u.items.end()), u.items.end());
    drop_covered(u);
    changed = u.items.size() > 1 && factor_heads(u, depth);
    if (u.items.size() > 1) changed |= merge_counts(u);
    if (u.items.size() > 1) changed |= merge_chars(u);
    if (!changed) changed = absorb_epsilon(u);
    for (const Linear& item : u.items) u.all |= item.head == kAllExpr && item.rest == kEpsilonExpr;
  }
  return u.all ? kAllExpr : finish_union(u);
}

void ExprPool::add_member(Union& u, ExprId e) const {
  if (e == kEpsilonExpr) u.epsilon = true;
  if (e == kEpsilonExpr || is_empty(e)) return;
  u.all |= e == kAllExpr;
  const Expr* x = &exprs_[e];
  if (x->op == Op::kRepeat && x->lo == 0 && x->hi == 1) {
    u.epsilon = true;
    e = x->a;
    x = &exprs_[e];
  }
  u.nullable |= x->nullable;
  if (x->op != Op::kOr) {
    u.items.push_back(split(e));
    return;
  }
  for (uint32_t i = 0; i < x->b; ++i) u.items.push_back(split(pool_[x->a + i]));
}

// Members that are made of the characters of a run which has all texts of them.
void ExprPool::drop_covered(Union& u) const {
  std::vector<ExprId> runs;
  for (const Linear& item : u.items)
    if (item.rest == kEpsilonExpr && is_run(item.head)) runs.push_back(item.head);
  for (const ExprId run : runs)
    std::erase_if(u.items, [&](const Linear& item) {
      if (item.rest == kEpsilonExpr && item.head == run) return false;
      const bool nullable = exprs_[item.head].nullable && exprs_[item.rest].nullable;
      if (nullable && exprs_[run].lo == 1) return false;
      return within_run(exprs_[item.head].alphabet | exprs_[item.rest].alphabet, run);
    });
}

// p.q | p.r = p.(q | r) over the sorted items. True when an item's head changed on the way.
bool ExprPool::factor_heads(Union& u, int depth) {
  if (depth >= kMaxFactorDepth || factor_work_ <= 0) return false;
  bool changed = false;
  size_t n = 0;
  for (size_t i = 0, j = 0; i < u.items.size(); i = j) {
    for (j = i + 1; j < u.items.size() && u.items[j].head == u.items[i].head;) ++j;
    Linear item = u.items[i];
    if (j - i > 1) {
      item = factor_group(std::span<const Linear>(u.items).subspan(i, j - i), depth);
      changed |= item.head != u.items[i].head;
    }
    u.items[n++] = item;
  }
  u.items.resize(n);
  return changed;
}

// The whole common prefix is taken at once, so that recursion is as deep as the branching, not the length.
ExprPool::Linear ExprPool::factor_group(std::span<const Linear> group, int depth) {
  std::vector<ExprId> prefix{group[0].head};
  std::vector<ExprId> rests;
  rests.reserve(group.size());
  for (const Linear& item : group) rests.push_back(item.rest);
  while (true) {
    const ExprId head = split(rests[0]).head;
    const bool common = head != kEpsilonExpr && std::all_of(rests.begin(), rests.end(), [&](ExprId e) {
      return split(e).head == head;
    });
    factor_work_ -= static_cast<int64_t>(rests.size());
    if (!common || factor_work_ <= 0) break;
    prefix.push_back(head);
    for (ExprId& e : rests) e = split(e).rest;
  }
  ExprId result = any_of(rests, depth + 1);
  for (size_t i = prefix.size(); i-- > 0;) result = cat(prefix[i], result);
  return split(result);
}

// x{a,b}.t | x{c,d}.t = x{min,max}.t when the counts overlap or touch.
bool ExprPool::merge_counts(Union& u) {
  const auto before = [this](const Linear& x, const Linear& y) {
    if (x.rest != y.rest) return x.rest < y.rest;
    const Counted a = counted(x.head);
    const Counted b = counted(y.head);
    return a.base != b.base ? a.base < b.base : a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi;
  };
  std::sort(u.items.begin(), u.items.end(), before);
  size_t n = 0;
  for (const Linear item : u.items) {
    if (n > 0 && u.items[n - 1].rest == item.rest) {
      const Counted a = counted(u.items[n - 1].head);
      const Counted b = counted(item.head);
      if (a.base == b.base && (a.hi == kInfinite || b.lo <= a.hi + 1)) {
        u.items[n - 1] = split(cat(repeat(a.base, a.lo, std::max(a.hi, b.hi)), item.rest));
        continue;
      }
    }
    u.items[n++] = item;
  }
  const bool changed = n < u.items.size();
  u.items.resize(n);
  return changed;
}

// [a].t | [b].t = [ab].t over items sorted by their rest.
bool ExprPool::merge_chars(Union& u) {
  std::vector<uint32_t> sets;
  size_t n = 0;
  for (size_t i = 0, j = 0; i < u.items.size(); i = j) {
    sets.clear();
    const ExprId rest = u.items[i].rest;
    for (j = i; j < u.items.size() && u.items[j].rest == rest; ++j) {
      const Expr& head = exprs_[u.items[j].head];
      if (head.op == Op::kChars) {
        sets.push_back(head.a);
      } else {
        u.items[n++] = u.items[j];
      }
    }
    if (!sets.empty()) {
      const uint32_t set = sets.size() == 1 ? sets[0] : sets_.unite(sets);
      u.items[n++] = split(cat(chars(set), rest));
    }
  }
  const bool changed = n < u.items.size();
  u.items.resize(n);
  return changed;
}

// Drops an empty word that some member matches too, or that x{1,n} can take in as x{0,n}.
bool ExprPool::absorb_epsilon(Union& u) {
  if (!u.epsilon) return false;
  for (const Linear& item : u.items) u.nullable |= exprs_[item.head].nullable && exprs_[item.rest].nullable;
  if (u.nullable) {
    u.epsilon = false;
    return false;
  }
  for (Linear& item : u.items) {
    const Expr head = exprs_[item.head];
    if (item.rest != kEpsilonExpr || head.op != Op::kRepeat || head.lo != 1) continue;
    item.head = repeat(head.a, 0, head.hi);
    item = split(item.head);
    u.epsilon = false;
    return true;
  }
  return false;
}

ExprId ExprPool::finish_union(Union& u) {
  std::vector<ExprId> members;
  members.reserve(u.items.size());
  for (const Linear& item : u.items) {
    const ExprId e = item.rest == kEpsilonExpr ? item.head : cat(item.head, item.rest);
    if (e != kEmptyExpr) members.push_back(e);  // a part may have been found dead by now
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  if (has_complement_pair(members)) return kAllExpr;
  ExprId result = kEmptyExpr;
  if (members.size() == 1) result = members[0];
  if (members.size() > 1) result = intern_set(Op::kOr, members);
  if (!u.epsilon) return result;
  return result == kEmptyExpr ? kEpsilonExpr : repeat(result, 0, 1);
}

bool ExprPool::has_complement_pair(std::span<const ExprId> sorted) const {
  return std::any_of(sorted.begin(), sorted.end(), [&](ExprId e) {
    return exprs_[e].op == Op::kNot && std::binary_search(sorted.begin(), sorted.end(), exprs_[e].a);
  });
}

// ---- intersection ---------------------------------------------------------------------------------------

ExprId ExprPool::all_of(std::span<const ExprId> in) {
  std::vector<ExprId> members;
  uint32_t set = sets_.full();  // the members of the form [set]{lo,hi}, all in one
  int64_t lo = 0;
  int64_t hi = kInfinite;
  const auto add = [&](ExprId e) {
    const Counted c = e == kEpsilonExpr ? Counted{kAnyExpr, 0, 0} : counted(e);
    if (exprs_[c.base].op != Op::kChars) {
      members.push_back(e);
      return;
    }
    set = sets_.intersect(set, exprs_[c.base].a);
    lo = std::max(lo, c.lo);
    hi = std::min(hi, c.hi);
  };
  for (const ExprId e : in) {
    if (is_empty(e)) return kEmptyExpr;
    if (exprs_[e].op != Op::kAnd) {
      add(e);
      continue;
    }
    for (uint32_t i = 0; i < exprs_[e].b; ++i) add(pool_[exprs_[e].a + i]);
  }
  if (lo > hi) return kEmptyExpr;
  const ExprId simple = repeat(chars(set), lo, hi);
  if (simple == kEmptyExpr) return kEmptyExpr;
  if (simple == kEpsilonExpr) {
    const bool nullable = std::all_of(members.begin(), members.end(), [&](ExprId e) { return exprs_[e].nullable; });
    return nullable ? kEpsilonExpr : kEmptyExpr;
  }
  if (simple != kAllExpr) members.push_back(simple);
  return finish_intersection(members);
}

ExprId ExprPool::finish_intersection(std::vector<ExprId>& members) {
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  int64_t min_len = 0;
  int64_t max_len = kInfinite;
  for (const ExprId e : members) {
    min_len = std::max(min_len, exprs_[e].min_len);
    max_len = std::min(max_len, exprs_[e].max_len);
  }
  if (min_len > max_len || has_complement_pair(members)) return kEmptyExpr;
  // Bounds on the length alone that another member keeps anyway.
  for (size_t i = 0; i < members.size() && members.size() > 1; ++i) {
    const Counted c = counted(members[i]);
    if (c.base != kAnyExpr) continue;
    const bool idle = std::any_of(members.begin(), members.end(), [&](ExprId e) {
      return e != members[i] && exprs_[e].min_len >= c.lo && exprs_[e].max_len <= c.hi;
    });
    if (idle) members.erase(members.begin() + static_cast<std::ptrdiff_t>(i--));
  }
  if (members.empty()) return kAllExpr;
  return members.size() == 1 ? members[0] : intern_set(Op::kAnd, members);
}

}  // namespace mw
