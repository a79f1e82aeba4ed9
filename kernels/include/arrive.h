// Threadgroups that leave parts of a result for each other.
#pragma once

#include <akunu_tensor>

using namespace metal;

// Whether all threadgroups of a result have left their parts; the last to arrive is told so. What a threadgroup has left is there
// before it is counted. One thread counts for all, between two barriers. All threads must call it.
inline bool are_all_there(device uint *arrived, threadgroup uint *n_before, uint n_parts, uint thread_index) {
    threadgroup_barrier(mem_flags::mem_device);
    if (thread_index == 0) {
        *n_before = nvidia::arrive(arrived);
    }
    threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
    return *n_before + 1 == n_parts;
}
