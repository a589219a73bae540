// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// hostKey completes the key of a kernel file that belongs to the machine this runs on: the running
// kernel's BTF, of which the release is known too, and what is in /boot and /lib/modules. Other
// files' keys are returned as they are.
func hostKey(abs string, k kernel.Key) kernel.Key {
	running := abs == kernel.HostBTF
	if !running && !strings.HasPrefix(abs, "/boot/") && !strings.HasPrefix(abs, "/lib/modules/") &&
		!strings.HasPrefix(abs, "/usr/lib/modules/") {
		return k
	}
	host, err := kernel.Host(kernel.HostOptions{})
	if err != nil {
		return k
	}
	if !running {
		host.Release = k.Release
	}
	return host
}
