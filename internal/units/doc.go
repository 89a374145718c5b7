// Package units writes numbers for people: with commas, with as many digits as they
// deserve, and with their noun in singular or plural.
package units
