/* What the programs of these tests share: the library, and an end that says where a condition fails. */
#pragma once

#include <akunu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, akunu_last_error());   \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)
#define OK(call) CHECK((call) == AKUNU_STATUS_OK)
