package profile

//go:generate go run ./functions ../../../bpf functions.txt
