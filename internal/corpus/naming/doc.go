// SPDX-License-Identifier: Apache-2.0

// Package naming reads keys and releases from paths, and decides by name which files have modules, configurations or symbols. It
// opens no file.
//
//	k := naming.KernelKey("debian/12/x86_64/6.1.0-47-amd64.btf.tar.xz") // debian/12/x86_64/6.1.0-47-amd64
//	rule, err := naming.Parse("rhel/8/{arch}")                          // of --as
//	k, ok := rule.Key("kernels/arm64/4.18.0.btf")                       // rhel/8/arm64/4.18.0
package naming
