//go:build !linux

package corpus

func boundMemory(int, uint64) {}
