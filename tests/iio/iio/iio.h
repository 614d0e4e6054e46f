/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <linux/types.h>

u64 iio_f64_of(s64 number, u64 by);
u64 iio_f64_product(u64 a, u64 b);
