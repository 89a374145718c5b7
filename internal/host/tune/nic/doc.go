// Package nic reads and sets what ethtool knows of a network card, each setting as
// one text: "combined 4", "on", "sdfn". A text that was read can be set again.
//
// [Cards] is for who reads many settings of many cards.
//
// A setting that a card does not have is fs.ErrNotExist. Everything acts in the
// network namespace of the process.
package nic
