// Every weight format.
#pragma once

#include "include/format/mlx.h"
#include "include/format/plain.h"
#include "include/format/q2_q3_k.h"
#include "include/format/q4.h"
#include "include/format/q4_q5_k.h"
#include "include/format/q5.h"
#include "include/format/q6_k.h"
#include "include/format/q8_0.h"
