// Many threads: the pool, and matchers of one program that fill masks at the same time while others advance, fork and go.
//   test_batch            the laws
//   test_batch --more     more rounds (for the thread sanitiser by hand)
#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "../../src/core/batch.h"
#include "../../src/core/matcher.h"
#include "problems.h"

namespace {

using mw::Matcher;
using mw::TokenId;
using support::chance;
using support::RandomProgram;
using support::Rng;
using support::roll;
using Row = std::vector<uint32_t>;
using Verdict = Matcher::Verdict;

// ---- the pool

void test_every_index_once() {
  for (const size_t n : {0u, 1u, 2u, 3u, 17u, 1000u}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> hits(n);
      mw::parallel_for(n, [&](size_t i) { ++hits[i]; });
      for (const auto& h : hits) CHECK(h == 1, "%zu items", n);
    }
  }
}

void test_callers_wait() {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::vector<int64_t> out(20);
        mw::parallel_for(out.size(), [&](size_t i) { out[i] = static_cast<int64_t>(i); });
        sum += std::accumulate(out.begin(), out.end(), int64_t{0});
      }
    });
  for (std::thread& t : callers) t.join();
  CHECK(sum == 4 * 100 * 190, "batches of several callers");
}

// What a piece of work throws comes out of the call, after all others have ended.
void test_exceptions() {
  for (int round = 0; round < 30; ++round) {
    std::vector<std::atomic<int>> ended(16);
    bool caught = false;
    try {
      mw::parallel_for(ended.size(), [&](size_t i) {
        if (i % 5 == 3) throw std::runtime_error("no");
        ++ended[i];
      });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    CHECK(caught, "an exception is lost");
    for (size_t i = 0; i < ended.size(); ++i) CHECK(ended[i] <= 1, "run twice");
    mw::parallel_for(ended.size(), [&](size_t i) { ended[i] = 7; });
    for (const auto& e : ended) CHECK(e == 7, "the pool after an exception");
  }
}

// ---- matchers

Row mask(Matcher& m, uint32_t budget) {
  Row row(mw::words_for(m.request().vocab().size()));
  const std::scoped_lock lock(m.session().mutex);
  CHECK(m.fill(row, budget, false) == Verdict::Yes, "all nodes are defined");
  return row;
}

bool accept(Matcher& m, TokenId t) {
  const std::scoped_lock lock(m.session().mutex);
  return m.accept(t) == Verdict::Yes;
}

TokenId any_of(const Row& row, const mw::Vocab& vocab, Rng& rng) {
  std::vector<TokenId> ids, longer;
  for (TokenId t = 0; t < vocab.size(); ++t)
    if (mw::test_bit(row.data(), t)) (vocab.bytes(t).size() > 1 ? longer : ids).push_back(t);
  if (ids.empty() && longer.empty()) return mw::kNoNode;
  return longer.empty() || (!ids.empty() && chance(rng, 40)) ? support::pick(rng, ids) : support::pick(rng, longer);
}

// A walk whose every mask goes into the digest: the same on whatever thread, among whatever others.
uint64_t walk(Matcher m, uint32_t seed, int steps) {
  Rng rng(seed);
  uint64_t digest = seed;
  for (int i = 0; i < steps; ++i) {
    const Row row = mask(m, chance(rng, 70) ? Matcher::kNoBudget : static_cast<uint32_t>(roll(rng, 40)));
    for (const uint32_t w : row) digest = mw::mix(digest, w);
    const Row all = mask(m, Matcher::kNoBudget);
    const TokenId t = any_of(all, m.request().vocab(), rng);
    if (t == mw::kNoNode) break;
    CHECK(accept(m, t), "an allowed token");
    const std::scoped_lock lock(m.session().mutex);
    if (chance(rng, 20) && m.num_tokens() > 1) m.rollback(1);
    const Matcher fork = m.fork();
    CHECK(fork.num_tokens() == m.num_tokens(), "a fork");
    if (m.is_finished()) break;
  }
  return digest;
}

// Threads over forks of one session, and over sessions of one program; every base and automaton is met for the first time by
// several threads at once.
void test_matchers(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<uint32_t>(500 + round);
    Rng rng(seed);
    const support::TokenList tokens = support::random_tokens(rng, support::Coverage::Complete, 250);
    RandomProgram expected_of(seed, tokens.build()), random(seed, tokens.build());
    expected_of.lower_all();
    random.lower_all();
    constexpr uint32_t kThreads = 4;
    std::vector<uint64_t> expected, found(kThreads);
    for (uint32_t i = 0; i < kThreads; ++i) expected.push_back(walk(Matcher(expected_of.program()), i / 2, 10));
    Matcher shared(random.program());
    CHECK(shared.prepare() == Verdict::Yes, "prepared");
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i, m = i % 2 ? shared.fork() : Matcher(random.program())] { found[i] = walk(m, i / 2, 10); });
    for (std::thread& t : threads) t.join();
    CHECK(found == expected, "program %u on threads", seed);
  }
}

// A batch of forks, as the binding fills one: each locks its session.
void test_batches(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const auto seed = static_cast<uint32_t>(900 + round);
    Rng rng(seed);
    const auto vocab = support::random_tokens(rng, support::Coverage::Complete, 200).build();
    RandomProgram random(seed, vocab);
    random.lower_all();
    std::vector<Matcher> matchers;
    for (int i = 0; i < 12; ++i) {
      matchers.push_back(i % 3 == 0 || matchers.empty() ? Matcher(random.program()) : matchers.back().fork());
      for (int64_t k = roll(rng, 4); k > 0; --k) {
        const TokenId t = any_of(mask(matchers.back(), Matcher::kNoBudget), *vocab, rng);
        if (t != mw::kNoNode) accept(matchers.back(), t);
      }
    }
    std::vector<Row> rows(matchers.size());
    mw::parallel_for(matchers.size(), [&](size_t i) { rows[i] = mask(matchers[i], Matcher::kNoBudget); });
    for (size_t i = 0; i < matchers.size(); ++i) CHECK(rows[i] == mask(matchers[i], Matcher::kNoBudget), "row %zu", i);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool more = argc > 1 && std::strcmp(argv[1], "--more") == 0;
  test_every_index_once();
  test_callers_wait();
  test_exceptions();
  test_matchers(more ? 100 : 40);
  test_batches(more ? 40 : 20);
  std::puts("batch: ok");
  return 0;
}
