package line

// The Makefile pins the compiler and its flags (make generate).

//go:generate go tool bpf2go -target bpfel -type pppoe_key -type pppoe_session -type pppoe_life -type pppoe_end -type pppoe_lost pppoe ../../../bpf/pppoe.bpf.c
