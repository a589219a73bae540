// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mikelolasagasti/xz"

	"github.com/btfgen/btfgen/internal/testing/testhosts"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// embeddable reports whether Go embeds a file of this name.
func embeddable(name string) bool { return !strings.ContainsAny(name, `"'*<>?|:`+"`") }

// values returns the variables of os-release as a reader sees them that cuts lines at "=" only.
func values(h *testhosts.Host) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(h.OSRelease) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		all[name] = value
	}
	return all
}

// readerRules are the rules by which projects look up, by layout. Each returns the name of the host's file, or false if the project's
// reader supports no such host.
var readerRules = map[string]func(h *testhosts.Host) (name string, ok bool){
	// A tree of BTFHub's: ID and VERSION_ID without quotes, BTFHub's word for the machine, no level without VERSION_ID.
	"btfhub": func(h *testhosts.Host) (string, bool) { return h.Key.FileName(), h.Key.Known() },
	// get_os_info and ensure_core_btf of bcc's btf_helpers.c: sscanf of ID=%64s and VERSION_ID="%64s, snprintf to 100 bytes.
	"bcc": func(h *testhosts.Host) (string, bool) {
		id, version := "", ""
		for line := range strings.Lines(h.OSRelease) {
			if word := strings.Fields(strings.TrimPrefix(line, "ID=")); strings.HasPrefix(line, "ID=") && len(word) > 0 {
				id = word[0]
			}
			if m := regexp.MustCompile(`^VERSION_ID="(\S{1,64})`).FindStringSubmatch(line); m != nil {
				version = m[1][:len(m[1])-1]
			}
		}
		name := fmt.Sprintf("./%s/%s/%s/%s.btf", id, version, h.Machine, h.Release)
		return name, h.OSRelease != "" && len(name) < 100
	},
	// GetOSInfo and InstantiateImageOperator of Inspektor Gadget.
	"inspektor-gadget": func(h *testhosts.Host) (string, bool) {
		id, version := values(h)["ID"], strings.Trim(values(h)["VERSION_ID"], `"`)
		return fmt.Sprintf("%s/%s/%s/%s.btf", id, version, h.Machine, h.Release), id != "" && version != "-" && kernel.CheckName(version) == nil
	},
	// discoverOSDistro of libbpfgo and unpackBTFHub of tracee, with files that Go embeds.
	"tracee": func(h *testhosts.Host) (string, bool) {
		id, version := values(h)["ID"], strings.ReplaceAll(values(h)["VERSION_ID"], `"`, "")
		name := fmt.Sprintf("%s/%s/%s/%s.btf", id, version, h.Machine, h.Release)
		return name, id != "" && version != "-" && kernel.CheckName(version) == nil && embeddable(name)
	},
	// getEmbeddedBTF of Datadog's agent, where it knows the platform.
	"datadog": func(h *testhosts.Host) (string, bool) {
		id := strings.Trim(values(h)["ID"], `"`)
		switch id {
		case "ubuntu":
			return fmt.Sprintf("ubuntu/%s/%s.btf.tar.xz", strings.Trim(values(h)["VERSION_ID"], `"`), h.Release), true
		case "amzn", "sles", "opensuse-leap", "rhel", "ol", "centos", "debian", "fedora":
			return fmt.Sprintf("%s/%s.btf.tar.xz", id, h.Release), true
		}
		return "", false
	},
}

// TestLayouts writes the kernels of all hosts of the table in each layout and format. The rule of the layout's reader must find the
// kernel of each host that it can serve.
func TestLayouts(t *testing.T) {
	hosts := testhosts.Read(t)
	dir := t.TempDir()
	for _, l := range Layouts {
		for name, format := range map[string]Format{"dir": Dir, "x.tar.gz": TarGz, "x.tar.xz": TarXz, "x.tar.zst": TarZst, "x.btfa": Native} {
			if format == Native {
				if _, err := LayoutOf(l.Name, format); (err == nil) != (l == Layouts[0]) {
					t.Errorf("%s: %v", l.Name, err)
				}
				continue
			}
			if _, err := LayoutOf(l.Name, format); err != nil {
				continue
			}
			served, unserved := 0, 0
			for _, machine := range []bool{true, false} { // of Datadog's, a bundle is for one machine
				var kernels []archive.Kernel
				seen := make(map[string]bool)
				var asked []*testhosts.Host
				for _, h := range hosts {
					if !h.Key.Known() || strings.HasPrefix(h.Source, "made up") || l.uname && h.BigEndian || l.packed && h.Key.Arch != map[bool]string{true: "x86_64", false: "arm64"}[machine] || !l.packed && !machine {
						continue
					}
					asked = append(asked, h)
					if !seen[h.Key.String()] {
						seen[h.Key.String()] = true
						kernels = append(kernels, archive.Kernel{Key: h.Key, BTF: []byte(h.Key.String())})
					}
				}
				if len(kernels) == 0 {
					continue
				}
				o := Output{Path: filepath.Join(dir, fmt.Sprint(l.Name, machine, name)), Format: format, Layout: l}
				if _, err := o.Write(t.Context(), archive.Info{}, kernels); err != nil {
					t.Fatal(err)
				}
				files := open(t, &o)
				for _, h := range asked {
					want, ok := readerRules[l.Name](h)
					if format == Dir {
						want = strings.TrimSuffix(strings.TrimPrefix(want, "./"), packedSuffix)
						ok = ok && !strings.Contains(want, "//") // a directory has no such level
						ok = ok && (l.tools || embeddable(want))
					}
					if m := unameMachines[h.Key.Arch]; l.uname && m != "" && m != h.Machine || strings.HasSuffix(h.Machine, "8l") {
						ok = false // of one machine's several words, files have one
					}
					data := files[want]
					if strings.HasSuffix(want, packedSuffix) && data != nil {
						data = untar(t, data)[h.Release+".btf"]
					}
					switch {
					case !ok:
						unserved++
					case string(data) == h.Key.String():
						served++
					default:
						t.Errorf("%s %s: %s asks for %q and gets %q", l.Name, name, h.Name, want, data)
					}
				}
			}
			t.Logf("%s %s: %d hosts are served; the rule cannot serve %d", l.Name, name, served, unserved)
			if served < 25 {
				t.Errorf("%s %s: %d hosts are served", l.Name, name, served)
			}
		}
	}
}

// open returns the files of an output.
func open(t *testing.T, o *Output) map[string][]byte {
	t.Helper()
	if o.Format == Dir {
		files := make(map[string][]byte)
		if err := filepath.Walk(o.Path, func(p string, fi os.FileInfo, err error) error {
			if err != nil || fi.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(o.Path, p)
			files[filepath.ToSlash(rel)], err = os.ReadFile(p)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return files
	}
	data, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	if o.Format == TarGz {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return tarFiles(t, z)
	}
	if o.Format == TarXz {
		return untar(t, data)
	}
	files := make(map[string][]byte)
	list, err := readTar(t.Context(), o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		files[f.Name] = f.Data
	}
	return files
}

func untar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	x, err := xz.NewReader(bytes.NewReader(data), 0)
	if err != nil {
		t.Fatal(err)
	}
	return tarFiles(t, x)
}

func tarFiles(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err == nil {
			files[h.Name], err = io.ReadAll(tr)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
