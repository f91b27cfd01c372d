#include "batch.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace mw {
namespace {

class Pool {
 public:
  explicit Pool(size_t threads) {
    for (size_t i = 1; i < threads; ++i) {
      try {
        threads_.emplace_back([this] { serve(); });
      } catch (const std::system_error&) {
        break;  // as many as there can be
      }
    }
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
      error_ = nullptr;
      ++round_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void take() {
    for (size_t i = next_++; i < size_; i = next_++) {
      try {
        (*work_)(i);
      } catch (...) {
        const std::scoped_lock lock(mutex_);
        if (!error_) error_ = std::current_exception();
      }
    }
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
  std::exception_ptr error_;  // the first that came out of a piece of work
  uint64_t round_ = 0;
  bool stop_ = false;
};

std::mutex pool_mutex;
Pool* the_pool = nullptr;  // never destroyed: its threads would have to be waited for at exit

Pool& pool() {
  const std::scoped_lock lock(pool_mutex);
  if (the_pool == nullptr) the_pool = new Pool(pool_size());
  return *the_pool;
}

}  // namespace

void forget_pool() { the_pool = nullptr; }  // left where it is: it cannot be destroyed without its threads

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
