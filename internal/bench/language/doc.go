// Package language measures the cost of reading, resolving and checking rule files: how
// time grows with their length, and how much memory a rule takes.
package language
