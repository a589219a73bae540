// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// What of SPDX 2.3 we have something to say in: https://spdx.github.io/spdx-spec/v2.3/
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		DataLicense   string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Files         []spdxFile         `json:"files"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		Version          string         `json:"versionInfo"`
		Download         string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		Copyright        string         `json:"copyrightText"`
		References       []spdxExternal `json:"externalRefs"`
	}
	spdxExternal struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxFile struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"fileName"`
		Types            []string       `json:"fileTypes"`
		Checksums        []spdxChecksum `json:"checksums"`
		LicenseConcluded string         `json:"licenseConcluded"`
		Copyright        string         `json:"copyrightText"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

const (
	spdxSelf    = "SPDXRef-DOCUMENT"
	spdxUnknown = "NOASSERTION"
	spdxMain    = "SPDXRef-Package-btfgen"

	repository = "https://github.com/btfgen/btfgen"
	mainModule = "github.com/btfgen/btfgen"
	ourLicence = "Apache-2.0"
)

// spdx describes a release: the programs, and by which modules they are linked from them.
func (r *release) spdx() ([]byte, error) {
	doc := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: spdxSelf, Name: "btfgen-" + r.version,
		Creation: spdxCreation{r.created.Format(time.RFC3339), []string{"Tool: btfgen-release-helper"}},
	}
	relate := func(element, how, related string) {
		doc.Relationships = append(doc.Relationships, spdxRelationship{element, how, related})
	}
	doc.Packages = append(doc.Packages, spdxPackage{
		ID: spdxMain, Name: mainModule, Version: r.version, Download: "git+" + repository,
		LicenseConcluded: ourLicence, LicenseDeclared: ourLicence, Copyright: "The btfgen authors",
		References: []spdxExternal{packageURL(mainModule, r.version)},
	})
	relate(spdxSelf, "DESCRIBES", spdxMain)
	for _, m := range r.modules {
		licence := strings.Join(m.licences, " AND ")
		p := spdxPackage{
			ID: m.spdxID(), Name: m.path, Version: m.version, Download: spdxUnknown,
			LicenseConcluded: licence, LicenseDeclared: licence, Copyright: strings.Join(m.copyright, "\n"),
			References: []spdxExternal{packageURL(m.path, m.version)},
		}
		if p.Copyright == "" {
			p.Copyright = spdxUnknown
		}
		doc.Packages = append(doc.Packages, p)
	}
	all := sha256.New()
	for _, p := range r.programs {
		short, long := sha1.Sum(p.data), sha256.Sum256(p.data)
		all.Write(long[:])
		f := spdxFile{
			ID: "SPDXRef-File-" + spdxName(p.name), Name: "./" + p.name, Types: []string{"BINARY"},
			Checksums:        []spdxChecksum{{"SHA1", hex.EncodeToString(short[:])}, {"SHA256", hex.EncodeToString(long[:])}}, // the former is required
			LicenseConcluded: spdxUnknown, Copyright: spdxUnknown,
		}
		doc.Files = append(doc.Files, f)
		relate(f.ID, "GENERATED_FROM", spdxMain)
		for _, m := range r.modules {
			if slices.Contains(p.modules, m.key()) {
				relate(f.ID, "STATIC_LINK", m.spdxID())
			}
		}
	}
	doc.Namespace = repository + "/spdx/" + r.version + "/" + hex.EncodeToString(all.Sum(nil)) // of these programs alone
	data, err := json.MarshalIndent(doc, "", "  ")
	return append(data, '\n'), err
}

func (m *module) spdxID() string { return "SPDXRef-Module-" + spdxName(m.key()) }

// spdxName is a name as the identifiers of SPDX may have it.
func spdxName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, name)
}

// packageURL is what lists of vulnerabilities call a module.
func packageURL(path, version string) spdxExternal {
	return spdxExternal{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.ReplaceAll(path, "+", "%2B") + "@" + strings.ReplaceAll(version, "+", "%2B")}
}
