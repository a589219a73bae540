// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"testing"
)

// isSetting reports whether an example is about a setting of the kernel's build.
func isSetting(name string) bool { return strings.HasPrefix(name, "CONFIG_") }

// Struct reports whether the example has a struct or member.
func (x *example) Struct(name, member string) bool {
	if member != "" {
		return x.has(name + "." + member)
	}
	return x.has(name) || x.Functions() && name == wholeBTF
}

// Function reports whether the example has a function.
func (x *example) Function(name string) bool {
	return x.has(name+"()") || x.has("static "+name+"()") || name == staticFunction && x.Functions() && !slices.Contains(x.without, "static functions")
}

// Functions reports whether the example has BTF.
func (x *example) Functions() bool {
	return slices.ContainsFunc(slices.Concat(x.with, x.without), func(name string) bool { return !isSetting(name) })
}

// Enum returns an enum of the example's BTF.
func (x *example) Enum(e Enum) map[string]uint64 {
	if !x.Functions() {
		return nil
	}
	l := make(map[string]uint64)
	for _, name := range x.with {
		if of, enumerator, ok := strings.Cut(name, ":"); ok && of == e.String() {
			l[enumerator] = 1
		}
	}
	return l
}

// Settings returns the settings of the example's configuration.
func (x *example) Settings() map[string]string {
	if !slices.ContainsFunc(slices.Concat(x.with, x.without), isSetting) {
		return nil
	}
	l := make(map[string]string)
	for _, name := range x.with {
		l[name] = "y"
	}
	return l
}

// Newest returns the example's release.
func (x *example) Newest() Release { return x.release }

func (x *example) has(name string) bool { return slices.Contains(x.with, name) }

// TestSettings checks that a setting alone does not show a fact that needs more.
func TestSettings(t *testing.T) {
	on := []string{"CONFIG_NET_SOCK_MSG"}
	for _, f := range []Fact{MapCookies, MapCall("sk_select_reuseport", "SOCKMAP"), MapCall("map_update_elem", "SOCKMAP")} {
		for _, tt := range []struct {
			k    example
			want Answer
		}{
			{example{release: Linux(4, 19), with: on}, Answer{Perhaps, ByRelease, ""}},
			{example{release: Linux(4, 19), without: on}, Answer{No, ByConfig, ""}},
			{example{release: Linux(6, 1), with: on}, Answer{Yes, ByRelease, ""}},
			{example{release: Linux(6, 1), without: on}, Answer{No, ByConfig, ""}},
			{example{release: Linux(6, 1)}, Answer{Yes, ByRelease, ""}},
		} {
			if got := Has(&tt.k, f); got != tt.want {
				t.Errorf("%s on %+v: %+v, want %+v", f, tt.k, got, tt.want)
			}
		}
	}
}
