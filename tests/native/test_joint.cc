// Objects and arrays ruled by control states: masks against what is accepted, budgets that are kept, made when reached.
#include <map>

#include "../../src/core/machines/joint_array.h"
#include "../../src/core/machines/joint_object.h"
#include "../../src/core/machines/key.h"
#include "../../src/core/matcher.h"
#include "problems.h"

namespace {

using namespace support;
using mw::Matcher;
using mw::NodeId;
using mw::TokenId;
using Verdict = Matcher::Verdict;

// An object {"a"|"b": 1 or [..], ...}: node by node, control states last. The root is 0.
class Joint {
 public:
  Joint(Rng& rng, std::shared_ptr<mw::Vocab> vocab, mw::Whitespace ws)
      : any_escapes_(chance(rng, 50)), vocab_(std::move(vocab)), program_(std::make_shared<mw::Program>(vocab_, ws)) {
    root_ = node();
    one_ = node();
    define(one_, std::make_unique<mw::ChoiceMachine>(std::vector<std::string>{"1", "12"}, *vocab_), mw::ChoiceMachine::start());
    for (const auto& p : {rx::alt({rx::one('a'), rx::lit(U"ab"), rx::lit(U"aab")}), rx::cat({rx::one('b'), rx::rep(rx::one('a'), 0)}),
                          rx::cat({rx::one('n'), rx::all()})})
      keys_.push_back(key(p));
    keys_.push_back(node());
    define(keys_.back(), std::make_unique<mw::ChoiceStringMachine>(std::vector<std::string>{"x\"y"}, any_escapes_, *vocab_),
           mw::ChoiceStringMachine::start());
    const NodeId array = node(), list = node(), last = node();
    define(array, std::make_unique<mw::JointArrayMachine>(list, ws), mw::JointArrayMachine::start());
    control(list, {}, {{one_, list}, {one_, last}, {array, last}}, {0, 3}, chance(rng, 50) ? -1 : 1);
    control(last, {}, {}, {}, -1);
    levels(rng, array);
  }

  const std::shared_ptr<mw::Program>& program() const { return program_; }
  void lower(const std::vector<NodeId>& needs) {
    for (NodeId n : needs) {
      const auto it = later_.find(n);
      if (it == later_.end()) continue;
      program_->define_control(n, std::move(it->second));
      later_.erase(it);
    }
  }

 private:
  using Alternative = std::pair<NodeId, NodeId>;
  NodeId node() { return program_->new_node(); }
  void define(NodeId n, std::unique_ptr<mw::Machine> machine, mw::State start) {
    program_->define_machine(n, std::move(machine), start);
  }
  NodeId key(const rx::Program& p) {
    const NodeId n = node();
    auto automaton = std::make_shared<mw::Automaton>(rx::compile(p));
    const uint32_t kind = automaton->serial();
    define(n, std::make_unique<mw::KeyMachine>(std::move(automaton), kind, any_escapes_, false, *vocab_), mw::KeyMachine::start());
    return n;
  }
  void control(NodeId n, std::vector<NodeId> keys, const std::vector<Alternative>& alternatives, std::vector<uint32_t> offsets, int32_t witness) {
    mw::Control c;
    c.may_close = witness < 0;
    c.keys = std::move(keys);
    c.offsets = std::move(offsets);
    c.witness = witness;
    for (const auto& [child, next] : alternatives) {
      c.children.push_back(child);
      c.nexts.push_back(next);
    }
    later_.emplace(n, std::move(c));
  }
  // Three levels, of at most three keys of a kind.
  void levels(Rng& rng, NodeId array) {
    std::vector<NodeId> at;
    for (int i = 0; i < 4; ++i) at.push_back(node());
    define(root_, std::make_unique<mw::JointObjectMachine>(at[0], program_->whitespace()), mw::JointObjectMachine::start());
    for (size_t i = 0; i < 3; ++i) {
      std::vector<NodeId> keys;
      std::vector<Alternative> alternatives;
      std::vector<uint32_t> offsets{0};
      for (NodeId k : keys_) {
        if (!chance(rng, 60) && !(k == keys_.back() && keys.empty())) continue;
        keys.push_back(k);
        alternatives.emplace_back(one_, at[i + 1]);
        if (chance(rng, 40)) alternatives.emplace_back(array, at[3]);
        if (chance(rng, 20)) alternatives.emplace_back(root_, at[3]);
        offsets.push_back(static_cast<uint32_t>(alternatives.size()));
      }
      control(at[i], std::move(keys), alternatives, std::move(offsets), chance(rng, 40) ? -1 : 0);
    }
    control(at[3], {}, {}, {0}, -1);
  }

  bool any_escapes_;
  std::shared_ptr<mw::Vocab> vocab_;
  std::shared_ptr<mw::Program> program_;
  NodeId root_ = 0, one_ = 0;
  std::vector<NodeId> keys_;
  std::map<NodeId, mw::Control> later_;
};

template <class Step>
bool complete(Joint& joint, Matcher& m, Step step) {
  for (;;) {
    const Verdict v = step();
    if (v != Verdict::Needs) return v == Verdict::Yes;
    joint.lower(std::vector<NodeId>(m.request().needs()));
  }
}

std::vector<TokenId> allowed(Joint& joint, Matcher& m, uint32_t budget) {
  std::vector<uint32_t> row(mw::words_for(m.request().vocab().size()));
  complete(joint, m, [&] { return m.fill(row, budget, false); });
  std::vector<TokenId> out;
  for (TokenId t = 0; t < row.size() * 32; ++t)
    if (mw::test_bit(row.data(), t)) out.push_back(t);
  return out;
}

void walk(Rng& rng, Joint& joint, bool compare) {
  Matcher m(joint.program());
  uint32_t left = 0;
  complete(joint, m, [&] { return m.cost(left); });
  if (left >= mw::kNoCost) {  // nothing can be spelled
    CHECK(allowed(joint, m, Matcher::kNoBudget).empty(), "no way to the end");
    return;
  }
  left += 1 + static_cast<uint32_t>(roll(rng, 12));
  while (!m.is_finished()) {
    const auto plain = allowed(joint, m, Matcher::kNoBudget), now = allowed(joint, m, left);
    CHECK(left > 0 && !now.empty(), "the budget is kept: %u left", left);
    CHECK(std::includes(plain.begin(), plain.end(), now.begin(), now.end()), "a budget adds nothing");
    if (compare)
      for (TokenId t = 0; t < m.request().vocab().size(); ++t) {
        Matcher fork = m.fork();
        const bool taken = complete(joint, fork, [&] { return fork.accept(t); });
        CHECK(taken == std::binary_search(plain.begin(), plain.end(), t), "token %u '%s'", t, show(m.request().vocab().bytes(t)).c_str());
      }
    const TokenId t = pick(rng, now);
    CHECK(complete(joint, m, [&] { return m.accept(t); }), "an allowed token");
    --left;
  }
}

}  // namespace

int main() {
  Rng rng(7);
  for (int i = 0; i < 70; ++i) {
    const Coverage coverage = i % 7 < 4 ? Coverage::Complete : i % 7 < 6 ? Coverage::Characters : Coverage::Holes;
    const auto vocab = random_tokens(rng, coverage, coverage == Coverage::Holes ? 60 : 300).build();
    Joint joint(rng, vocab, static_cast<mw::Whitespace>(i % 3));
    for (int k = 0; k < 2; ++k) walk(rng, joint, k == 0);
  }
}
