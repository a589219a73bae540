// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"log"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// The zero HostOptions describe the running machine.
func ExampleHost() {
	host, err := kernel.Host(kernel.HostOptions{OSRelease: "testdata/os-release/amazon2", Release: "5.10.0", Arch: "aarch64"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(host.Key)
	fmt.Println(host.Key.FileName())
	// Output:
	// amzn/2/arm64/5.10.0
	// amzn/2/arm64/5.10.0.btf
}

func ExampleKey_Canonical() {
	k, err := kernel.ParseFileName("amazon/2/aarch64/5.10.0.btf")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(k, "is", k.Canonical())
	// Output: amazon/2/aarch64/5.10.0 is amzn/2/arm64/5.10.0
}

func ExampleCompareVersions() {
	fmt.Println(kernel.CompareVersions("6.9", "6.10"), kernel.CompareVersions("6.13-rc2", "6.13"))
	// Output: -1 -1
}
