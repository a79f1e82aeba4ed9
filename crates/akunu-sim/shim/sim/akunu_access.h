// What clang's address instrumentation calls before each store, and before each load in libraries that were compiled for counting.
// The return address tells instructions apart. Atomic operations that read and write are not reported, but for counting.
#pragma once

// Not instrumented itself.
#define AKUNU_HOOK extern "C" __attribute__((noinline, no_sanitize("address")))

#define AKUNU_REPORT(ADDRESS, BYTES, IS_STORE)                                                                  \
    if (akunu::current->reports_accesses) {                                                                     \
        akunu::callbacks->access((ulong)(ADDRESS), BYTES, IS_STORE, (ulong)__builtin_return_address(0));        \
    }

#define AKUNU_SIZED(BYTES)                                                                                      \
    AKUNU_HOOK void __asan_load##BYTES##_noabort(ulong address) { AKUNU_REPORT(address, BYTES, 0) }             \
    AKUNU_HOOK void __asan_store##BYTES##_noabort(ulong address) { AKUNU_REPORT(address, BYTES, 1) }

AKUNU_SIZED(1)
AKUNU_SIZED(2)
AKUNU_SIZED(4)
AKUNU_SIZED(8)
AKUNU_SIZED(16)

// Accesses of other sizes, or less aligned than their size.
AKUNU_HOOK void __asan_loadN_noabort(ulong address, ulong bytes) { AKUNU_REPORT(address, bytes, 0) }
AKUNU_HOOK void __asan_storeN_noabort(ulong address, ulong bytes) { AKUNU_REPORT(address, bytes, 1) }
AKUNU_HOOK void *__asan_memcpy(void *to, const void *from, ulong bytes) {
    AKUNU_REPORT(from, bytes, 0)
    AKUNU_REPORT(to, bytes, 1)
    return __builtin_memcpy(to, from, bytes);
}
AKUNU_HOOK void *__asan_memset(void *to, int value, ulong bytes) {
    AKUNU_REPORT(to, bytes, 1)
    return __builtin_memset(to, value, bytes);
}
AKUNU_HOOK void __asan_handle_no_return() {}
