/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What makes a module of a file makes nothing of a program. */
#define EXPORT_SYMBOL_GPL(symbol)
#define MODULE_DESCRIPTION(text)
#define MODULE_LICENSE(text)
