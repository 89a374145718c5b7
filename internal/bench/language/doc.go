// Package language measures what it costs to read, resolve and check rule files:
// how time grows with their length, and how much memory a rule takes.
package language
