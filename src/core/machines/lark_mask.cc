// Masks of Lark grammars: from place to place of the vocabulary (lark/bases.h), with the parser in between.

#include <algorithm>

#include "../mask.h"
#include "../request.h"
#include "lark_memory.h"

namespace mw {

using namespace lark;

namespace {

constexpr uint32_t kMinDescendants = 100;  // below this a plain walk is as good
constexpr size_t kMaxSets = 4;               // of which a mask is put together each time it is written
constexpr size_t kDense = 512;               // scattered tokens cost what a bitset does

}  // namespace

class LarkMachine::MaskWalk {
 public:
  MaskWalk(const LarkMachine& machine, const LarkBases::Over& over, Walker& w, Memory& m)
      : machine_(machine), grammar_(*machine.grammar_), over_(over), w_(w), m_(m) {}

  void run(TrieNode node, State s) {
    const Context at = m_.contexts[handle(s)];
    LarkBases& bases = machine_.bases_;
    if (lex(s) == m_.stacks.lexer(at.stacks)) {
      jobs_.push_back({at.stacks, at.layout, &bases.place(over_, {node}, at.guards)});
    } else {
      const int32_t column = m_.layouts[at.layout].column;
      for (const LexState q : grammar_.lexer().parts(lex(s))) take(bases.get(over_, node, q, at.guards, column, true), at.stacks, at.layout);
    }
    while (!jobs_.empty()) {
      const Job job = jobs_.back();
      jobs_.pop_back();
      visit(job);
    }
    finish();
  }

 private:
  struct Job {
    StackSet stacks;
    LayoutId layout;
    Place* place;
  };

  void visit(const Job& job) {
    LarkBases& bases = machine_.bases_;
    if (grammar_.lexer().kind() == Lexer::Kind::First)
      return take(bases.get(over_, *job.place, m_.stacks.lexer(job.stacks)), job.stacks, job.layout);
    const std::span<Place::Entry> entries = bases.entries(over_, *job.place);
    if (entries.empty()) return;
    m_.stacks.wanted(job.stacks, wanted_);
    for (Place::Entry& e : entries)
      if ((wanted_[e.type / 64] >> (e.type % 64)) & 1) take(bases.get(over_, *job.place, e), job.stacks, job.layout);
  }

  void add(const TokenSet& set) {
    if (set.empty()) return;
    sets_.push_back(&set);
    (set.dense() ? dense_ : listed_) += set.dense() ? 1 : set.list().size();
  }

  // Many sets are made one, since a mask is written more often than it is found.
  void finish() {
    if (dense_ + listed_ / kDense < kMaxSets) {
      for (const TokenSet* set : sets_) w_.add(*set);
      return;
    }
    Words all(words_for(over_.vocab_size), 0);
    for (const TokenSet* set : sets_) {
      if (set->dense())
        for (size_t i = 0; i < all.size(); ++i) all[i] |= set->words()[i];
      else
        for (const TokenId t : set->list()) set_bit(all.data(), t);
    }
    w_.add(w_.keep_own(std::make_shared<const TokenSet>(std::move(all))));
  }

  void take(const LexBase& base, StackSet stacks, LayoutId layout) {
    w_.note_live();
    add(base.sure);
    for (const auto& group : base.groups) take(group, stacks, layout);
    for (const auto& stay : base.stays) take(stay, stacks, layout);
    for (const auto& exit : base.exits) {
      if (exit.ignore) go_on(stacks, m_.layouts.at_column(layout, -1), *exit.behind);
      if (!exit.feed) continue;
      LayoutId to_layout = m_.layouts.at_column(layout, exit.column);
      const StackSet to = m_.layouts.end(grammar_.indents(), m_.stacks, stacks, exit.type, to_layout);
      if (to != kNoStack) go_on(to, to_layout, *exit.behind);
    }
  }

  void take(const LexBase::Group& group, StackSet stacks, LayoutId layout) {
    for (const Type t : group.types)
      if (is_wanted(t, stacks)) return add(group.tokens);
    if (group.ignored && !grammar_.indents().on) return add(group.tokens);
    for (const auto& part : machine_.bases_.parts(over_, group)) {
      const int lives = part.reach->passes_freely ? 1 : part_lives(*part.reach, stacks, layout);
      if (lives > 0) add(part.tokens);
      if (lives < 0)
        for (const auto& stay : part.stays) take(stay, stacks, layout);
    }
  }

  void take(const LexBase::Stay& stay, StackSet stacks, LayoutId layout) {
    const Context at{stacks, stay.guards, m_.layouts.at_column(layout, stay.column)};
    if (machine_.is_live(m_, machine_.state(m_, at, stay.q))) add(stay.tokens);
  }

  // With indentation a line end is not enough: it depends on what follows.
  bool is_wanted(Type t, StackSet stacks) {
    return !(grammar_.indents().on && t == grammar_.indents().newline) && m_.stacks.can_feed(stacks, t);
  }

  // Of states without guards in a loose grammar: 1 yes, 0 no, -1 it depends on the state; see find_live.
  int part_lives(const Lexer::Reach& reach, StackSet stacks, LayoutId layout) {
    const Indents& indents = grammar_.indents();
    for (const Type t : reach.types)
      if (is_wanted(t, stacks)) return 1;
    if (!indents.on) return reach.passes ? 1 : 0;
    if (reach.passes || (reach.newline && m_.layouts[layout].brackets > 0)) return -1;
    return reach.newline && m_.stacks.can_feed(stacks, indents.newline) ? -1 : 0;
  }

  void go_on(StackSet stacks, LayoutId layout, Place& place) {
    if (!grammar_.is_loose()) {  // there is much to be saved, and what is live is known at once only in loose ones
      const State s = machine_.before_token(m_, {stacks, place.guards(), layout});
      if (!machine_.is_live(m_, s)) return;
    }
    jobs_.push_back({stacks, layout, &place});
  }

  const LarkMachine& machine_;
  Grammar& grammar_;
  const LarkBases::Over& over_;
  Walker& w_;
  Memory& m_;
  std::vector<Job> jobs_;
  std::vector<const TokenSet*> sets_;
  std::vector<uint64_t> wanted_;
  size_t dense_ = 0, listed_ = 0;  // bitsets, and tokens in lists
};

bool LarkMachine::walk_base(Walker& w, TrieNode node, const Item& item) const {
  if (handle(item.state) == 0 || !w.takes_sets()) return false;
  if (node != TokenTrie::kRoot && w.trie().descendants(node) < kMinDescendants) return false;
  Memory& m = memory(w.request());
  const LarkBases::Over over{grammar_->lexer(), w.trie(), w.vocab().size(), grammar_->is_loose(), grammar_->indents().on,
                             w.vocab().is_byte_complete() ? &w.vocab().bases() : nullptr};
  if (w.costs()) walk_costs(w, over, m, node, item);
  else MaskWalk(*this, over, w, m).run(node, item.state);
  return true;
}

// Each end of a token in the vocabulary has a cost of its own, and what can be finished is not enough.
void LarkMachine::walk_costs(Walker& w, const LarkBases::Over& over, Memory& m, TrieNode node, const Item& item) const {
  const Context at = m.contexts[handle(item.state)];
  const int32_t column = m.layouts[at.layout].column;
  const LexBase& base = bases_.get(over, node, lex(item.state), at.guards, column, false);
  for (const auto& stay : base.stays) {
    const State s = state(m, {at.stacks, stay.guards, m.layouts.at_column(at.layout, stay.column)}, stay.q);
    if (is_live(m, s) && w.admits(w.request().item_cost({s, item.machine, item.rest}))) w.add(stay.tokens);
  }
  for (const auto& exit : base.exits) {
    const auto follow = [&](StackSet to, LayoutId layout) {
      if (to == kNoStack) return;
      const State s = before_token(m, {to, exit.behind->guards(), layout});
      if (is_live(m, s)) w.follow_exits(exit.behind->exits(w.trie(), grammar_->lexer()), {}, {s, item.machine, item.rest});
    };
    if (exit.ignore) follow(at.stacks, m.layouts.at_column(at.layout, -1));
    if (!exit.feed) continue;
    LayoutId layout = m.layouts.at_column(at.layout, exit.column);
    const StackSet to = m.layouts.end(grammar_->indents(), m.stacks, at.stacks, exit.type, layout);
    follow(to, layout);
  }
}

}  // namespace mw
