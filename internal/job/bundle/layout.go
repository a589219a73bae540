// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Layout is how a project's reader names the BTF of a host. TestLayouts has the rule of each, by which it looks up the hosts of
// testdata/btfa/hosts.txt.
type Layout struct {
	Name    string
	Readers string   // who reads it, in the plural
	path    string   // path of a file, with {id}, {version}, {arch} and {release}
	formats []Format // nil for all
	uname   bool     // {arch} is what uname -m says, else BTFHub's
	raw     bool     // the reader keeps the quotes of ID in os-release, and its capitals
	bare    bool     // the reader finds no VERSION_ID without quotes
	only    []string // distributions with {version} in the path; nil for all
	packed  bool     // each file of a tar is a .tar.xz with the BTF
	tools   bool     // the reader parses tar headers itself: ustar, names that begin with ./ and have up to 99 bytes
}

// Layouts are the layouts, the default first.
var Layouts = []*Layout{
	{Name: "btfhub", Readers: "users of BTFHub", path: "{id}/{version}/{arch}/{release}.btf"},
	// iovisor/bcc libbpf-tools/btf_helpers.c: ID=%s with quotes, VERSION_ID="%s only with quotes, an empty level else.
	{Name: "bcc", Readers: "bcc's tools", path: "{id}/{version}/{arch}/{release}.btf", uname: true, raw: true, bare: true, tools: true, formats: []Format{Dir, TarGz}},
	// inspektor-gadget pkg/operators/btfgen (tar) and pkg/btfgen (embedded): ID with quotes, no host without VERSION_ID.
	{Name: "inspektor-gadget", Readers: "Inspektor Gadget's gadgets", path: "{id}/{version}/{arch}/{release}.btf", uname: true, raw: true, formats: []Format{Dir, TarGz}},
	// aquasecurity/tracee, parca-dev/parca-agent: unpackBTFHub, below dist/btfhub. Go embeds no name with a quote, so it finds no host whose ID has quotes.
	{Name: "tracee", Readers: "tracee and other users of libbpfgo's OSInfo", path: "{id}/{version}/{arch}/{release}.btf", uname: true},
	// DataDog/datadog-agent pkg/ebpf/btf.go: getEmbeddedBTF, loadEmbedded. A bundle is for one machine.
	{Name: "datadog", Readers: "Datadog's agents", path: "{id}/{version}/{release}.btf", only: []string{"ubuntu"}, packed: true, formats: []Format{Dir, TarXz}},
}

// LayoutNames are the names of the layouts.
func LayoutNames() (names []string) {
	for _, l := range Layouts {
		names = append(names, l.Name)
	}
	return names
}

// LayoutOf returns the layout with a name, the default for none, or an error if its readers do not read the format.
func LayoutOf(name string, format Format) (*Layout, error) {
	i := slices.IndexFunc(Layouts, func(l *Layout) bool { return l.Name == cmp.Or(name, Layouts[0].Name) })
	if i < 0 {
		return nil, fmt.Errorf("no layout %s", name)
	}
	l := Layouts[i]
	if i > 0 && (format == Native || l.formats != nil && !slices.Contains(l.formats, format)) {
		var reads []string
		for s, f := range suffixes {
			if slices.Contains(l.formats, f) {
				reads = append(reads, s)
			}
		}
		slices.Sort(reads)
		return nil, fmt.Errorf("%s read %s, or a directory", l.Readers, cmp.Or(strings.Join(reads, " and "), "tar files"))
	}
	return l, nil
}

// unameMachines are what uname -m says where BTFHub's names differ.
var unameMachines = map[string]string{"arm64": "aarch64", "arm": "armv7l", "i386": "i686", "mipsel": "mips", "mips64el": "mips64"}

// rawIDs has the text behind ID= in os-release where that is not just the ID. Sources: which-distro/os-release, chef/os_release.
var rawIDs = map[string]string{
	"alinux": `"alinux"`, "almalinux": `"almalinux"`, "amzn": `"amzn"`, "centos": `"centos"`, "chimera": `"chimera"`, "deepin": "Deepin",
	"endless": `"endless"`, "eurolinux": `"eurolinux"`, "hce": `"hce"`, "kylin": `"kylin"`, "miraclelinux": `"miraclelinux"`, "ol": `"ol"`,
	"openeuler": `"openEuler"`, "opensuse-leap": `"opensuse-leap"`, "opensuse-microos": `"opensuse-microos"`,
	"opensuse-tumbleweed": `"opensuse-tumbleweed"`, "openwrt": `"openwrt"`, "postmarketos": `"postmarketos"`, "rhcos": `"rhcos"`,
	"rhel": `"rhel"`, "rocky": `"rocky"`, "scientific": `"scientific"`, "sles": `"sles"`, "solus": `"solus"`,
	"suse-microos": `"suse-microos"`, "tencentos": `"tencentos"`, "uos": "UOS", "virtuozzo": `"virtuozzo"`, "void": `"void"`,
	"xenenterprise": `"xenenterprise"`,
}

// bareVersions are distributions whose VERSION_ID has no quotes in os-release. Sources as for rawIDs.
var bareVersions = []string{
	"alpine", "altlinux", "android", "arch", "astra", "bottlerocket", "buildroot", "coreos", "cos", "fedora", "flatcar", "photon", "rancheros",
	"slackware", "talos",
}

const packedSuffix = ".tar.xz"

// names returns the names of a kernel's BTF in an output of a format. The first is the main one; the others are alternatives.
func (l *Layout) names(k kernel.Key, format Format) (names []string) {
	if !k.Known() {
		return []string{k.FileName()}
	}
	if l.Name == Layouts[0].Name {
		return []string{k.FileName()}
	}
	k = k.Canonical()
	if k.OneBuild() {
		// In os-release, VERSION_ID ends before the build.
		k.VersionID, _, _ = strings.Cut(k.VersionID, "-")
	}
	ids, versions, arch := []string{k.ID}, []string{k.VersionID}, k.Arch
	if raw := rawIDs[k.ID]; l.raw && raw != "" && (format != Dir || l.tools) { // Go embeds no name with a quote
		ids = append(ids, raw)
	}
	if l.bare && format != Dir && slices.Contains(bareVersions, k.ID) && k.VersionID != "" {
		versions = append(versions, "")
	}
	if l.only != nil && !slices.Contains(l.only, k.ID) {
		versions = []string{""}
	}
	if l.uname {
		arch = cmp.Or(unameMachines[arch], arch)
	}
	for _, id := range ids {
		for _, version := range versions {
			name := strings.NewReplacer("{id}", id, "{version}", version, "{arch}", arch, "{release}", k.Release).Replace(l.path)
			if !l.tools || format == Dir { // a directory has no empty level
				name = path.Clean(name)
			}
			if l.packed && format != Dir {
				name += packedSuffix
			}
			names = append(names, name)
		}
	}
	return names
}

// files returns the files of kernels in the layout. An alternative name that two kernels with different BTF have is left out, and so
// is one that the output cannot have.
func (l *Layout) files(format Format, kernels []archive.Kernel) ([]File, error) {
	var main, more []File
	at := make(map[string][]byte)
	names := make(map[string]kernel.Key) // kernels by the names of their files in main
	differ := make(map[string]bool)
	for _, k := range kernels {
		data := k.BTF
		for i, name := range l.names(k.Key, format) {
			if i == 0 && strings.HasSuffix(name, packedSuffix) {
				var err error
				if data, err = pack(k); err != nil {
					return nil, err
				}
			}
			old, twice := at[name]
			switch {
			case i == 0 && names[name] != (kernel.Key{}):
				if !bytes.Equal(old, data) {
					return nil, fmt.Errorf("%s and %s are one file for %s, %s, and their BTFs differ: choose one with --select", names[name], k.Key, l.Readers, name)
				}
			case i == 0:
				main = append(main, File{Name: name, Data: data})
				at[name], names[name] = data, k.Key
			case l.tools && len(bccPrefix)+len(name) > maxBCCName:
			case twice:
				differ[name] = differ[name] || !bytes.Equal(old, data)
			default:
				more = append(more, File{Name: name, Data: data})
				at[name] = data
			}
		}
	}
	return append(main, slices.DeleteFunc(more, func(f File) bool { return differ[f.Name] || names[f.Name] != kernel.Key{} })...), nil
}

// pack returns a .tar.xz with the BTF of a kernel.
func pack(k archive.Kernel) ([]byte, error) {
	var b bytes.Buffer
	o := Output{Format: TarXz}
	err := o.writeTar(&b, []File{{Name: k.Key.Release + kernel.FileSuffix, Data: k.BTF}})
	return b.Bytes(), err
}

// unquoted returns the key of a file's name, whose ID may have the quotes and capitals of os-release.
func unquoted(k kernel.Key) kernel.Key {
	k.ID = strings.Trim(k.ID, `"`)
	return k.Canonical()
}
