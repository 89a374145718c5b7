/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What keeps the verifier's work small. It follows every way through a program and stops where
 * it has been before with the same knowledge. It keeps what it knows of registers separately for
 * each way: if a value is tested twice, all that is between the two tests is followed once for
 * each outcome. It knows nothing of what is read from a map, or from the
 * arguments of a global function, and it follows a global function once for each program.
 */
#ifndef WEIR_VERIFIER_H
#define WEIR_VERIFIER_H

/* Reads a field once more, where the compiler would remember it. For fields of maps and of what
 * global functions are given; it does nothing for variables on the stack. */
#define reread(field) (*(const volatile __typeof__(field) *)&(field))

#endif
