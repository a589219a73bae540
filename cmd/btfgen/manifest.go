package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// manifest is what pipelines want to know of a run, but tracers need not ship.
// Fields are only ever added.
type manifest struct {
	Tool        string           `json:"tool"`
	Relocations string           `json:"relocations"` // as in the archive
	Objects     []manifestObject `json:"objects"`
	Kernels     []manifestKernel `json:"kernels"`
}

type manifestObject struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

type manifestKernel struct {
	Kernel     string   `json:"kernel"`
	Sources    []string `json:"source_sha256"` // of the kernel's file, then of those with its modules
	RawSize    int64    `json:"raw_size"`      // of the kernel's BTF and its modules', bytes
	SHA256     string   `json:"sha256"`        // of the minimized BTF
	Size       int      `json:"size"`          // bytes
	Resolved   int      `json:"resolved"`      // relocations, each once per object; also below
	Unresolved int      `json:"unresolved"`
	Ambiguous  int      `json:"ambiguous"`
	Errors     int      `json:"errors"`
}

// info is what an archive says of the objects.
func (o *objects) info() archive.Info {
	info := archive.Info{Tool: tool(), Relocations: relolog.Hash(o.list...)}
	for i, obj := range o.list {
		info.Objects = append(info.Objects, archive.NewObject(obj.Name(), o.data[i]))
	}
	return info
}

// kernelsOf returns what a run came to as the kernels of an archive.
func kernelsOf(rep *generate.Report) []archive.Kernel {
	kernels := make([]archive.Kernel, len(rep.Kernels))
	for i := range rep.Kernels {
		kernels[i] = archive.Kernel{Key: outputKey(&rep.Kernels[i]), BTF: rep.Kernels[i].BTF}
	}
	return kernels
}

// outputKey names a kernel by its file where no key is known.
func outputKey(k *generate.Kernel) archive.Key {
	if k.Key.Known() {
		return k.Key
	}
	if key, err := archive.ParseFileName(k.FileName()); err == nil {
		return key
	}
	return k.Key
}

func writeManifest(c *cli.Context, path string, objs *objects, rep *generate.Report) error {
	m := manifest{Tool: tool(), Objects: []manifestObject{}, Kernels: []manifestKernel{}}
	sum := relolog.Hash(objs.list...)
	m.Relocations = hex.EncodeToString(sum[:])
	for i, o := range objs.list {
		m.Objects = append(m.Objects, manifestObject{o.Name(), hexSum(objs.data[i])})
	}
	files := make(map[string]string)
	for i := range rep.Kernels {
		k := &rep.Kernels[i]
		e := manifestKernel{
			Kernel: outputKey(k).String(), RawSize: k.RawSize, SHA256: hexSum(k.BTF), Size: len(k.BTF), Resolved: k.Resolved,
			Unresolved: k.Count(relolog.Poisoned), Ambiguous: k.Count(relolog.Ambiguous), Errors: k.Count(relolog.Error),
		}
		for _, p := range k.Sources {
			if files[p] == "" {
				s, err := fileSum(p)
				if err != nil {
					return fmt.Errorf("manifest: %w", err)
				}
				files[p] = s
			}
			e.Sources = append(e.Sources, files[p])
		}
		m.Kernels = append(m.Kernels, e)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(m); err != nil {
		return err
	}
	return writeOut(c, path, b.Bytes())
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
