// SPDX-License-Identifier: Apache-2.0

// Package facts has tables of what kernels differ in, and decides from what is known of a kernel whether it has a fact.
//
// facts.txt has the facts, each with the first release of Linux, and with what shows it: a witness, something in the BTF of the kernels
// that have the fact, or a setting of the kernel's build. helpers.txt has which programs may call which helpers. [Has] answers yes, no or
// perhaps, and by what:
//
//	witness present in the BTF            yes, by the witness
//	witness missing in a whole kernel's   no, by the witness
//	setting not in the configuration      no, by the configuration
//	release at least the first one        yes, by the release
//	otherwise                             perhaps: distributions take over what is newer
//
// Package rule asks by the constants in names.go and by functions such as [Instruction], and turns answers into findings.
package facts
