// SPDX-License-Identifier: Apache-2.0

package facts

import "testing"

// sample is a kernel of a few properties.
type sample struct {
	release  Release           // of its name, 0 for none
	btf      bool              // it has the BTF of a whole kernel, with what follows
	has      map[string]bool   // structs, STRUCT.MEMBER, functions with (), ENUM:ENUMERATOR
	settings map[string]string // nil where they are not known
}

func (k *sample) Struct(name, member string) bool {
	if member != "" {
		name += "." + member
	}
	return k.has[name] || k.btf && name == wholeBTF
}
func (k *sample) Function(name string) bool {
	return k.has[name+"()"] || k.btf && name == staticFunction
}
func (k *sample) Functions() bool             { return k.btf }
func (k *sample) Settings() map[string]string { return k.settings }
func (k *sample) Newest() Release             { return k.release }

func (k *sample) Enum(e Enum) map[string]uint64 {
	if !k.btf {
		return nil
	}
	l := make(map[string]uint64)
	for name := range k.has {
		if of, enumerator := split(name); of == e.String() {
			l[enumerator] = 1
		}
	}
	return l
}

// split splits ENUM:ENUMERATOR.
func split(name string) (enum, enumerator string) {
	for i := range name {
		if name[i] == ':' {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

// TestSettings checks that a setting which is on does not show a fact that needs more than the setting.
func TestSettings(t *testing.T) {
	const setting = "CONFIG_NET_SOCK_MSG"
	on, off := map[string]string{setting: "y"}, map[string]string{}
	for _, f := range []Fact{MapCookies, MapCall("sk_select_reuseport", "SOCKMAP"), MapCall("map_update_elem", "SOCKMAP")} {
		for _, tt := range []struct {
			k    sample
			want Answer
		}{
			{sample{release: Linux(4, 19), settings: on}, Answer{Perhaps, ByRelease, ""}},
			{sample{release: Linux(4, 19), settings: off}, Answer{No, ByConfig, ""}},
			{sample{release: Linux(6, 1), settings: on}, Answer{Yes, ByRelease, ""}},
			{sample{release: Linux(6, 1), settings: off}, Answer{No, ByConfig, ""}},
			{sample{release: Linux(6, 1)}, Answer{Yes, ByRelease, ""}},
		} {
			if got := Has(&tt.k, f); got != tt.want {
				t.Errorf("%s on %s with settings %v: %+v, want %+v", f, tt.k.release, tt.k.settings, got, tt.want)
			}
		}
	}
}
