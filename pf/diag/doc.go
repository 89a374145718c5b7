// Package diag holds errors and warnings about a configuration, each with the text at
// fault, related places, and a suggestion for a misspelt word.
//
// They are printed as file:line:column: message, the source line, ^ under the fault and ~
// under the related place. If the fault came from a macro, ^ is under the use of the
// macro and ~ under the text in its definition.
package diag
