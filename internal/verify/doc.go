// SPDX-License-Identifier: Apache-2.0

// Package verify proves that relocating against minimized BTFs gives the
// decisions that the kernels' own BTFs give, under the rules of each loader:
// libbpf's and aya's, with the project's own engine, and cilium/ebpf's, with its
// own code.
//
// The passes, named as the code names them:
//
//  1. pair: each kernel of the corpus is paired with the minimized BTF of its
//     key; what stays alone on either side is a finding.
//  2. libbpf: relolog.Run on both, and a comparison record for record: result,
//     new value, target, and the set of candidates that match, with path,
//     offset and value. Type IDs are not compared, nor candidates that do not
//     match, nor how many there are of equal ones.
//  3. table: what every distinct relocation makes of every candidate, compared
//     by relolog.Table. It sees what no log shows, such as the size of a load.
//  4. cilium: btf.CORERelocate on both, for every program with the functions
//     that are linked into it, and a comparison of the fixups.
//  5. aya: what the engine says of aya, on both.
//  6. loaders: on the full BTF, where libbpf and cilium/ebpf do not agree. That
//     is nothing the minimized BTF could help, so it is no difference.
//
// cilium/ebpf decides about all relocations of one local type in one program
// together, and about each such group alone, so groups are what is relocated
// here; equal groups of several programs once.
package verify
