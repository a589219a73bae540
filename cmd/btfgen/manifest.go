// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/job/bundle"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/pkg/archive"
)

// info is what an archive says of the objects and of what is kept besides.
func (o *objects) info(rep *generate.Report, keep *core.Keep) archive.Info {
	info := archive.Info{Tool: tool(), Relocations: rep.Relocations(o.list, keep)}
	for i, obj := range o.list {
		info.Objects = append(info.Objects, archive.NewObject(obj.Name(), o.data[i], obj.Machines()...))
	}
	return info
}

func writeManifest(c *cli.Context, path string, cfg *generate.Config, objs *objects, rep *generate.Report) error {
	list := []generate.ManifestObject{}
	for i, o := range objs.list {
		list = append(list, generate.ManifestObject{Name: o.Name(), SHA256: sha256.Sum256(objs.data[i])})
	}
	b, err := generate.NewManifest(tool(), cfg, list, rep).Encode()
	if err != nil {
		return err
	}
	return writeOut(c, path, b)
}

// manifestOf is where the manifest of an archive is looked for unless told.
func manifestOf(archive string) string {
	return strings.TrimSuffix(archive, bundle.NativeSuffix) + ".json"
}
