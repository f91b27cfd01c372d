#include "batch.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <unistd.h>
#endif

namespace mw {
namespace {

long process_id() {
#ifdef _WIN32
  return 0;
#else
  return static_cast<long>(getpid());
#endif
}

class Pool {
 public:
  explicit Pool(size_t threads) {
    for (size_t i = 1; i < threads; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Pool() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(size_t n, const std::function<void(size_t)>& work) {
    const std::scoped_lock one_batch(batch_);
    {
      const std::scoped_lock lock(mutex_);
      work_ = &work;
      size_ = n;
      next_ = 0;
      busy_ = threads_.size();
      ++round_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  void take() {
    for (size_t i = next_++; i < size_; i = next_++) (*work_)(i);
  }
  void serve() {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stop_ || round_ != seen; });
        if (stop_) return;
        seen = round_;
      }
      take();
      const std::scoped_lock lock(mutex_);
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex batch_, mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(size_t)>* work_ = nullptr;
  size_t size_ = 0;
  std::atomic<size_t> next_{0};
  size_t busy_ = 0;
  uint64_t round_ = 0;
  bool stop_ = false;
};

// Threads do not survive fork(): a child finds the parent's pool dead and leaves it where it is (its locks may be held).
Pool& pool() {
  static std::mutex* mutex = new std::mutex;
  static std::atomic<Pool*> current{nullptr};
  static std::atomic<long> owner{-1};
  if (owner.load(std::memory_order_acquire) == process_id()) return *current.load(std::memory_order_acquire);
  if (owner.load() != -1 && owner.load() != process_id()) mutex = new std::mutex;
  const std::scoped_lock lock(*mutex);
  if (owner.load() != process_id()) {
    current.store(new Pool(pool_size()), std::memory_order_release);
    owner.store(process_id(), std::memory_order_release);
  }
  return *current.load();
}

}  // namespace

size_t pool_size() {
  const unsigned n = std::thread::hardware_concurrency();
  return n < 1 ? 1 : n > 16 ? 16 : n;
}

void parallel_for(size_t n, const std::function<void(size_t)>& work) {
  if (n < 2 || pool_size() < 2) {
    for (size_t i = 0; i < n; ++i) work(i);
    return;
  }
  pool().run(n, work);
}

}  // namespace mw
