// Package traffic sends frames of a known kind across the testbed and checks what
// arrives. A BPF program that the kernel runs on live frames writes them
// (bpf/generate.bpf.c). Others check each frame (check), count frames (count), or read
// their time stamps (measure).
//
// A [Case] chooses the frames. A [Setup] says where they start and end, and what the path
// changes in between. No frames are counted before one frame of each connection was found
// to be correct.
package traffic
