// SPDX-License-Identifier: Apache-2.0

// Command btfgen makes minimized BTF for BPF objects and many kernels.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(catchSignals(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}
