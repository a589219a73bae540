// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strings"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// hostKey completes the key of a kernel of this machine: the running kernel, whose release is known, or one in /boot or /lib/modules. Keys of
// other files do not change.
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
