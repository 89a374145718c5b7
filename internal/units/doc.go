// Package units writes numbers for people: with commas, with as many digits
// as they are worth, with their noun in the right number.
package units
