// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
)

// example is a kernel with the answer to whether it has a fact. Tests are generated from examples:
//
//	6.1                        only its release is known
//	Debian 6.1                 the kernel of Debian for x86_64 in testdata/vmlinux
//	4.14 with bpf_htab.ma      a whole kernel's BTF has what follows, or the configuration has a setting
//	6.1 without bpf_htab.ma    its BTF does not have what follows, or the configuration does not have a setting
//
// A BTF "without static functions" does not list them, as some do not.
type example struct {
	text    string
	want    Presence
	debian  bool
	release Release
	with    []string
	without []string
}

func parseExample(text string, want Presence) (x example, err error) {
	x = example{text: text, want: want}
	head, names, found := strings.Cut(text, " without ")
	if x.without = strings.Split(names, ", "); !found {
		if head, names, found = strings.Cut(text, " with "); found {
			x.with = strings.Split(names, ", ")
		}
		x.without = nil
	}
	release, debian := strings.CutPrefix(head, "Debian ")
	x.debian = debian
	if x.release, err = parseRelease(release); err != nil || debian && found {
		err = fmt.Errorf("%q: want RELEASE, Debian RELEASE, RELEASE with NAMES or RELEASE without NAMES", text)
	}
	return x, err
}
