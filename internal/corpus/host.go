package corpus

import (
	"bufio"
	"os"
	"runtime"
	"strings"

	"github.com/btfgen/btfgen/pkg/archive"
)

// hostKey completes the key of a kernel file that belongs to the machine this runs on: the running
// kernel's BTF, of which the release is known too, and what is in /boot and /lib/modules. Other
// files' keys are returned as they are.
func hostKey(abs string, k archive.Key) archive.Key {
	switch {
	case abs == "/sys/kernel/btf/vmlinux":
		k.Release = procText("/proc/sys/kernel/osrelease")
	case strings.HasPrefix(abs, "/boot/"), strings.HasPrefix(abs, "/lib/modules/"),
		strings.HasPrefix(abs, "/usr/lib/modules/"):
	default:
		return k
	}
	k.ID, k.VersionID = osRelease()
	k.Arch = procText("/proc/sys/kernel/arch")
	if k.Arch == "" {
		k.Arch = archive.CanonicalArch(runtime.GOARCH)
	}
	if k.Validate() != nil {
		return archive.Key{}
	}
	return k
}

func procText(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// osRelease returns ID and VERSION_ID, empty if they are not known.
func osRelease() (id, version string) {
	r, err := os.Open("/etc/os-release")
	if err != nil {
		if r, err = os.Open("/usr/lib/os-release"); err != nil {
			return "", ""
		}
	}
	defer r.Close()
	for sc := bufio.NewScanner(r); sc.Scan(); {
		name, value, _ := strings.Cut(strings.TrimSpace(sc.Text()), "=")
		value = strings.Trim(value, `"'`)
		switch name {
		case "ID":
			id = value
		case "VERSION_ID":
			version = value
		}
	}
	return id, version
}
