/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What keeps the verifier's work small. It follows every way through a program and stops where
 * it has been before with the same knowledge. What it knows of a register, it knows on each way
 * apart: a value that is tested, and tested again later, makes all that is in between be
 * followed once for each outcome. It knows nothing of what is read from a map, or from the
 * arguments of a global function, and it follows a global function once for each program.
 */
#ifndef WEIR_VERIFIER_H
#define WEIR_VERIFIER_H

/* Reads a field once more, where the compiler would remember it. For fields of maps and of what
 * global functions are given; it does nothing for variables on the stack. */
#define reread(field) (*(const volatile __typeof__(field) *)&(field))

#endif
