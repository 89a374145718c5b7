package traffic

// The compiler and its flags come from the Makefile (make generate), which pins
// them: another compiler makes other bytes.

//go:generate go tool bpf2go -target bpfel -type pace generate bpf/generate.bpf.c
//go:generate go tool bpf2go -target bpfel -type answer -type finding check bpf/check.bpf.c
//go:generate go tool bpf2go -target bpfel -type counter count bpf/count.bpf.c
//go:generate go tool bpf2go -target bpfel -type seen measure bpf/measure.bpf.c
