// SPDX-License-Identifier: Apache-2.0

// Package selection chooses kernels by their keys, and modules by their names, as users write them.
//
//	s, err := selection.Parse("debian>=11,x86_64") // docs/cli.md has the grammar
//	s.Match(key)                                   // a term about an unknown part of the key does not match
//	m, err := selection.ParseModules("btrfs,nf_conntrack")
//	m.Has("btrfs")
package selection
