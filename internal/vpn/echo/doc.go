// Package echo asks hosts behind an interface for echoes, by packets of a size that no router may cut.
package echo
