// Package diag holds what the language has to say about a configuration:
// errors and warnings, each with the text that is at fault, places related to
// it, and a suggestion where a word looks misspelt.
//
// They are printed as file:line:column: message, the source line, ^ under the
// fault and ~ under the related place. Where the fault came out of a macro, ^
// stands under the macro's use and ~ under the text in its definition.
package diag
