#include "request_pool.h"

#include <atomic>

#include "request.h"

namespace mw {
namespace {

constexpr size_t kMostIdle = 2;                  // of one constraint
constexpr size_t kMostBytes = size_t{1} << 20;   // of one request
constexpr size_t kMostInAll = size_t{64} << 20;  // of all constraints

std::atomic<size_t> idle_bytes{0};

}  // namespace

RequestPool::RequestPool() = default;

RequestPool::~RequestPool() {
  for (const auto& request : idle_) idle_bytes.fetch_sub(request->bytes_used(), std::memory_order_relaxed);
}

std::unique_ptr<Request> RequestPool::take() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Request> request = std::move(idle_.back());
  idle_.pop_back();
  idle_bytes.fetch_sub(request->bytes_used(), std::memory_order_relaxed);
  return request;
}

void RequestPool::give(std::unique_ptr<Request> request) {
  const size_t bytes = request->bytes_used();
  if (bytes > kMostBytes || idle_bytes.load(std::memory_order_relaxed) + bytes > kMostInAll) return;
  const std::scoped_lock lock(mutex_);
  if (idle_.size() >= kMostIdle) return;
  idle_bytes.fetch_add(bytes, std::memory_order_relaxed);
  idle_.push_back(std::move(request));
}

}  // namespace mw
