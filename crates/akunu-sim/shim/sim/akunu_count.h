// What clang's address instrumentation calls before each load and store, in libraries that were compiled for counting. The
// return address tells instructions apart.
#pragma once

#define AKUNU_COUNTED(BYTES)                                                                                    \
    AKUNU_UNCOUNTED void __asan_load##BYTES##_noabort(ulong address) {                                          \
        akunu::callbacks->access(address, BYTES, 0, (ulong)__builtin_return_address(0));                        \
    }                                                                                                           \
    AKUNU_UNCOUNTED void __asan_store##BYTES##_noabort(ulong address) {                                         \
        akunu::callbacks->access(address, BYTES, 1, (ulong)__builtin_return_address(0));                        \
    }

#define AKUNU_UNCOUNTED extern "C" __attribute__((noinline, no_sanitize("kernel-address")))

AKUNU_COUNTED(1)
AKUNU_COUNTED(2)
AKUNU_COUNTED(4)
AKUNU_COUNTED(8)
AKUNU_COUNTED(16)

// Accesses of other sizes, or less aligned than their size.
AKUNU_UNCOUNTED void __asan_loadN_noabort(ulong address, ulong bytes) {
    akunu::callbacks->access(address, bytes, 0, (ulong)__builtin_return_address(0));
}
AKUNU_UNCOUNTED void __asan_storeN_noabort(ulong address, ulong bytes) {
    akunu::callbacks->access(address, bytes, 1, (ulong)__builtin_return_address(0));
}
AKUNU_UNCOUNTED void *__asan_memcpy(void *to, const void *from, ulong bytes) {
    akunu::callbacks->access((ulong)from, bytes, 0, (ulong)__builtin_return_address(0));
    akunu::callbacks->access((ulong)to, bytes, 1, (ulong)__builtin_return_address(0));
    return __builtin_memcpy(to, from, bytes);
}
AKUNU_UNCOUNTED void *__asan_memset(void *to, int value, ulong bytes) {
    akunu::callbacks->access((ulong)to, bytes, 1, (ulong)__builtin_return_address(0));
    return __builtin_memset(to, value, bytes);
}
AKUNU_UNCOUNTED void __asan_handle_no_return() {}
