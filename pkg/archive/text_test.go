// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// unprintable is part of names from outside that messages escape, and printable of those that they keep.
const (
	unprintable = "\x1b[2J\n\u202eo\u009b\xff"
	unpathed    = "\u202eo\xff\u009b" // the same where a name may have no control characters below a space
	printable   = "é漢🛡️"
)

// TestMessages checks that every message about an archive is one line of printable text, in Go and C, whatever the names in it are.
func TestMessages(t *testing.T) {
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		exec, shapes := bpfObject(t, "execsnoop.bpfel.o"), bpfObject(t, "shapes.bpfel.o")
		btfs := testminimized.Kernels(t)
		var kernels []archive.Kernel
		for i, release := range []string{"6.1.0-1", "6.1.0-2", "6.1.0-3", "6.1.0-9"} {
			for j, id := range []string{unpathed, "b" + printable} {
				k := kernel.Key{ID: id, VersionID: "1" + unpathed, Arch: "x86_64", Release: release + "-" + unpathed + printable}
				kernels = append(kernels, archive.Kernel{Key: k, BTF: btfs[i/3*j].BTF})
			}
		}
		var b bytes.Buffer
		info := archive.Info{Tool: unprintable, Objects: []archive.Object{
			archive.NewObject(unprintable, exec, "x"+unpathed), archive.NewObject(strings.Repeat(printable, 20), exec, "arm64"),
			archive.NewObject("\xe2\x82", exec, "arm64"),
		}}
		if err := archive.Write(t.Context(), &b, info, kernels); err != nil {
			t.Fatal(err)
		}
		a := mustOpen(t, b.Bytes())
		if got := c.Open(t, b.Bytes()); got.Status != readers.OK {
			t.Fatal(got.Error)
		}

		all := 0
		check := func(what, message string) {
			t.Helper()
			all++
			if escape.Text(message) != message || !utf8.ValidString(message) || message == "" {
				t.Errorf("%s: %q", what, message)
			}
		}
		want := kernels[0].Key
		unknown, other, next, nowhere := want, want, want, want
		unknown.ID, other.ID, next.Release, nowhere.Arch = "b", "c"+unpathed, "6.1.0-4-"+unpathed+printable, unpathed
		other.Release = kernels[6].Key.Release // their BTFs differ
		var wants []kernel.Key
		for _, k := range []kernel.Key{want, unknown, other, next, nowhere} {
			wants = append(wants, k)
			for _, n := range []int{0, 1, 3} {
				check("Lookup of "+k.String(), a.Lookup(k, n).Reason)
			}
		}
		c.CompareLookups(t, a, wants)
		for _, o := range info.Objects {
			check("Object", o.String())
		}
		for _, o := range [][]byte{shapes, exec} {
			goError := a.Covers(archive.NewObject(unprintable, o, "s390x"))
			check("Covers", goError.Error())
			_, cError := c.Covers(t, o, "s390x")
			check("btfa_covers", cError)
			if !strings.Contains(cError, strings.Repeat(printable, 4)) || !strings.Contains(goError.Error(), strings.Repeat(printable, 20)) {
				t.Errorf("a name is not readable in %q or %q", cError, goError)
			}
			if name := escape.Text(unprintable); !strings.Contains(cError, name) || !strings.Contains(goError.Error(), name) {
				t.Errorf("no name %s in %q or %q", name, cError, goError)
			}
		}
		_, err := a.BTF(next)
		check("BTF", err.Error())
		opts := archive.FindOptions{Archive: a, IgnoreKernel: true, Host: kernel.HostOptions{
			OSRelease: "../kernel/testdata/os-release/debian", Release: next.Release, Arch: "x" + unpathed,
		}}
		_, err = archive.Find(opts)
		check("Find", err.Error())
		opts.Object = shapes
		_, err = archive.Find(opts)
		check("Find for an object", err.Error())
		check("btfa_find for an object", c.Find(t, opts).Error)
		opts.Object = nil
		check("btfa_find", c.Find(t, opts).Error)
		opts.File = "/no/such/" + unprintable
		check("btfa_find of a file", c.Find(t, opts).Error)

		info.Objects[0].Sum = nil
		check("Write", archive.Write(t.Context(), &b, info, nil).Error())
		kernels[1].Key = kernels[0].Key
		kernels[1].BTF = btfs[1].BTF
		check("Write", archive.Write(t.Context(), &b, archive.Info{}, kernels).Error())
		t.Logf("%d messages", all)
	})
}

// TestPrintable compares the texts of all readers for every character.
func TestPrintable(t *testing.T) {
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		a := openFor(t, c)
		var wants []kernel.Key
		var name []byte
		for r := rune(1); r <= utf8.MaxRune; r++ {
			if !slow.Enabled() && r == 0x40000 {
				r = 0xe0000 // no plane between has characters
			}
			if name = utf8.AppendRune(name, r); len(name) > 250 || r == utf8.MaxRune {
				wants = append(wants, kernel.Key{ID: "x", Arch: "x86_64", Release: string(name)})
				name = nil
			}
		}
		for i := range 256 {
			for _, tail := range []string{"", "\x80", "\xbf\xbf", "\x9f\x80", "\x8f\xbf\xbf", "\x90\x80\x80"} {
				wants = append(wants, kernel.Key{ID: "x", Arch: "x86_64", Release: "r" + string([]byte{byte(i | 1)}) + tail + "r"})
			}
		}
		for i, m := range c.Lookups(t, wants, 0) {
			if got := a.Lookup(wants[i], 0).Reason; got != m.Reason {
				t.Fatalf("%q:\nGo %s\nC  %s", wants[i].Release, got, m.Reason)
			}
		}
	})
}

// TestPythonText checks that the reader in Python prints names on one line each.
func TestPythonText(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.btfa")
	var b bytes.Buffer
	info := archive.Info{Tool: "\x1b[2J\n\u202e", Objects: []archive.Object{archive.NewObject("\x1b[31m"+printable, nil)}}
	k := testminimized.Kernels(t)[0]
	k.Key.ID = "\u202e\xff" + printable
	if err := archive.Write(t.Context(), &b, info, []archive.Kernel{k}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	got := string(pythonReader(t, path, dir))
	want := `\x1b[2J\n\u202e` + "\nshard 0/0\nobject \"" + `\x1b[31m` + printable + `" e3b0c442 "" ` + "\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(k.Key.FileName()))); err != nil || !bytes.Equal(got, k.BTF) {
		t.Errorf("BTF differs (%v)", err)
	}
}
