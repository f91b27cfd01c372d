// A persistent pool of threads for filling many masks at once; made anew in a forked child (forget_pool).
#pragma once

#include <cstddef>
#include <functional>

namespace mw {

// Calls work(i) for i in [0, n), on the pool and on the calling thread; returns when all are done. One batch at a time
// per process: others wait. An exception that comes out of one is thrown on, after the others have ended.
void parallel_for(size_t n, const std::function<void(size_t)>& work);

// In a forked child, before anything else: the threads do not exist there.
void forget_pool();
// Threads that take part, the caller included.
size_t pool_size();

}  // namespace mw
