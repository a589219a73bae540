// SPDX-License-Identifier: Apache-2.0

package limits

// What booting a kernel may take (check --boot).
const (
	// BootConfig bounds a kernel's configuration, and what a module says of itself, in bytes. Real: 290 kB.
	BootConfig = 4 << 20

	// BootModules bounds the modules that are loaded for the programs, with those that they depend on, and
	// BootModuleBytes each. Real: 12 MB (amdgpu).
	BootModules     = 64
	BootModuleBytes = 64 << 20

	// GuestMemory is what the emulated machine has, in MiB.
	GuestMemory = 1024

	// GuestLine bounds a line that comes from a booted machine, in bytes, GuestBytes all of them. Real: less
	// than 1 MB, of 573 programs.
	GuestLine  = 64 << 10
	GuestBytes = 64 << 20

	// GuestLog is what of the verifier's log of a program is told, from its end, in bytes.
	GuestLog = 4 << 10

	// GuestOutput is what of a command's output is told, in bytes.
	GuestOutput = 1 << 20

	// GuestConsole is what of a kernel's messages is kept, from their end, in bytes.
	GuestConsole = 8 << 10
)
