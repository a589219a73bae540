// SPDX-License-Identifier: Apache-2.0

// Package kernel says which kernel is meant: by distribution, version, architecture and release.
//
//	k, err := kernel.Host(kernel.HostOptions{}) // of the machine that this runs on
//	fmt.Println(k)                              // debian/12/x86_64/6.1.0-47-amd64
//	fmt.Println(k.FileName())                   // debian/12/x86_64/6.1.0-47-amd64.btf
//
// Distributions and architectures have several spellings; [Key.Canonical] chooses BTFHub's, and
// [Key.Compare] takes all of them for the same. Versions and releases have the order of
// [CompareVersions].
//
// All functions are safe for many goroutines.
package kernel
