// Package shaper describes what the queues of a file ask for, in the form that the
// dataplane needs: for each interface and direction a tree of classes, with rates in bytes
// per second. It knows nothing of the kernel and of the language.
package shaper
