// SPDX-License-Identifier: Apache-2.0

// Package kernel identifies kernels by distribution, version, architecture and
// release.
//
//	host, err := kernel.Host(kernel.HostOptions{}) // the running system
//	fmt.Println(host.Key)                          // debian/12/x86_64/6.1.0-47-amd64
//	fmt.Println(host.Key.FileName())               // debian/12/x86_64/6.1.0-47-amd64.btf
//
// Distributions and architectures have several spellings. [Key.Canonical] returns
// BTFHub's, and [Key.Compare] treats all of them as equal. [CompareVersions] compares
// versions and releases.
//
// All functions are safe for use by many goroutines.
package kernel
