// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIdentify(t *testing.T) {
	const (
		bsd = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided that\n"
		mit = "Permission is hereby granted, free of charge, to any person obtaining a copy\nof this … shall be included in all\ncopies or substantial portions of the Software."
	)
	for _, c := range []struct {
		text string
		want []string
	}{
		{bsd, []string{"BSD-2-Clause"}},
		{"> " + strings.ReplaceAll(bsd, "\n", "\n> "), []string{"BSD-2-Clause"}},
		{bsd + "used to endorse or promote products", []string{"BSD-3-Clause"}},
		{mit, []string{"MIT"}},
		{mit + "\n  Licensed under the Apache License, Version 2.0 (the", []string{"Apache-2.0", "MIT"}},
		{"All rights reserved.", nil},
	} {
		if got := identify(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestUnknownLicence checks that modules without a known licence are refused.
func TestUnknownLicence(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none":    {"README": "Permission is hereby granted"},
		"another": {"LICENSE": "Ask first."},
	} {
		dir := t.TempDir()
		for f, text := range files {
			if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		m := &module{path: "example.org/m", version: "v1.0.0"}
		if err := m.readLicences(dir); err == nil || !strings.Contains(err.Error(), "example.org/m@v1.0.0") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRelease describes the test program itself.
func TestRelease(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := readProgram("linux-amd64/btfgen", exe)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}}@{{.Version}}", "github.com/ulikunitz/xz", "go.yaml.in/yaml/v3", "github.com/klauspost/compress").Output()
	if err != nil {
		t.Fatal(err)
	}
	p.modules = append(p.modules, strings.Fields(string(out))...)
	modules, err := linked([]*program{p})
	if err != nil {
		t.Skipf("needs Go's sources and the module cache: %v", err)
	}
	sources, err := os.ReadFile("../../packaging/copyright")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "v1.2.3", created: time.Unix(0, 0).UTC(), programs: []*program{p}, modules: modules, sources: string(sources)}
	data, err := r.spdx()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		ID       string `json:"SPDXID"`
		Packages []struct {
			ID              string `json:"SPDXID"`
			Name            string `json:"name"`
			LicenseDeclared string `json:"licenseDeclared"`
		} `json:"packages"`
		Files []struct {
			ID string `json:"SPDXID"`
		} `json:"files"`
		Relationships []struct {
			Element string `json:"spdxElementId"`
			Type    string `json:"relationshipType"`
			Related string `json:"relatedSpdxElement"`
		} `json:"relationships"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{doc.ID: true}
	add := func(id string) {
		if ids[id] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(id) {
			t.Errorf("identifier %q", id)
		}
		ids[id] = true
	}
	licences := make(map[string]string)
	for _, p := range doc.Packages {
		add(p.ID)
		licences[p.Name] = p.LicenseDeclared
	}
	for _, f := range doc.Files {
		add(f.ID)
	}
	linked := 0
	for _, x := range doc.Relationships {
		if !ids[x.Element] || !ids[x.Related] {
			t.Errorf("%s %s %s", x.Element, x.Type, x.Related)
		}
		if x.Type == "STATIC_LINK" {
			linked++
		}
	}
	if linked != len(modules) || len(modules) < 3 {
		t.Errorf("%d of %d modules are linked", linked, len(modules))
	}
	for name, want := range map[string]string{
		mainModule: ourLicence, standardLibrary: "BSD-3-Clause", "github.com/ulikunitz/xz": "BSD-3-Clause", "go.yaml.in/yaml/v3": "Apache-2.0 AND MIT",
	} {
		if licences[name] != want {
			t.Errorf("licence of %s: %q, want %q", name, licences[name], want)
		}
	}
	for what, text := range map[string]string{"LICENSES": r.licences(), "copyright": r.copyright()} {
		for _, m := range modules {
			if !strings.Contains(text, m.path) {
				t.Errorf("%s lacks %s", what, m.path)
			}
		}
	}
	if strings.Contains(r.copyright(), "TERMS AND CONDITIONS FOR USE") {
		t.Error("copyright contains the Apache licence, to which Debian only refers")
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(r.copyright()), "\n\n") {
		for line := range strings.Lines(paragraph) {
			if !regexp.MustCompile(`^([A-Z][A-Za-z-]*:\s|  *\S)`).MatchString(line) {
				t.Errorf("copyright has the line %q", line)
			}
		}
	}
}
