// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/report/codes"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// The part of SARIF 2.1.0 that code hosts show.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		URI     string      `json:"informationUri"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string    `json:"id"`
		Short   sarifText `json:"shortDescription"`
		Full    sarifText `json:"fullDescription"`
		Help    sarifText `json:"help"`
		HelpURI string    `json:"helpUri"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Index     int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"` // one
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
		Prints    sarifPrints     `json:"partialFingerprints"`
	}
	sarifPrints struct {
		Cause string `json:"btfgenCause/v1"`
	}
	sarifLocation struct {
		ID       int `json:"id,omitempty"` // set for related locations, to which the message has links
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
			Region sarifRegion `json:"region"`
		} `json:"physicalLocation"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
)

const (
	project = "https://github.com/btfgen/btfgen"
	manual  = project + "/blob/main/docs/findings.md#"
)

// SARIF writes a result per cause at the first line where it shows, with links to the
// others. One that no line shows is at the beginning of the object.
func SARIF(w io.Writer, r *verdict.Report, o Options) error {
	run := sarifRun{Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "btfgen", Version: strings.TrimPrefix(o.Version, "v"), URI: project}
	index := make(map[rule.Code]int)
	for _, f := range codes.Families() {
		for _, e := range f.Codes {
			index[e.Code] = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules,
				sarifRule{string(e.Code), sarifText{e.Title + "."}, sarifText{e.Title + ". " + e.Means}, sarifText{e.Title + ". " + e.Means + " " + e.Fix}, manual + string(e.Code)})
		}
	}
	only := o.restrict(r)
	for _, g := range slices.Concat(only.Causes, only.Warnings) {
		res := sarifResult{Level: "warning"}
		res.Rule, res.Index, res.Prints.Cause = string(g.Code), index[g.Code], fingerprint(only, &g)
		slices.SortFunc(g.Sources, comparePlaces)
		switch g.Status {
		case rule.Fails:
			res.Level = "error"
		case rule.Unknown:
			res.Level = "note"
		}
		res.Message.Text = noLinks.Replace(string(escape.Sprintf("%s", causeMessage(only, &g, 10))))
		if len(g.Sources) == 0 {
			l := location(r.Programs[g.Programs[0]].Object, "")
			l.Physical.Region.Line = 1
			res.Locations = []sarifLocation{l}
		}
		for i, s := range g.Sources {
			l := location(s, o.SourceRoot)
			switch {
			case i == 0:
				res.Locations = []sarifLocation{l}
				continue
			case i == 1:
				res.Message.Text += " Also at "
			default:
				res.Message.Text += ", "
			}
			l.ID = i
			res.Related = append(res.Related, l)
			res.Message.Text += "[" + noLinks.Replace(escape.Text(path.Base(s))) + "](" + strconv.Itoa(i) + ")"
			if i == len(g.Sources)-1 {
				res.Message.Text += "."
			}
		}
		run.Results = append(run.Results, res)
	}
	for _, o := range r.Whole() {
		if !o.Sum().NeverLoaded() {
			continue
		}
		res := sarifResult{Rule: string(rule.AnalysisUnloaded), Index: index[rule.AnalysisUnloaded], Level: "note"}
		res.Message.Text = noLinks.Replace(string(escape.Sprintf("%s: not loaded on any of %s.", o.Object, words.Plural(o.Sum().Unloaded, "kernel"))))
		first := o
		if o.Variants != nil {
			first = &r.Objects[o.Variants[0][0]]
		}
		l := location(first.Object, "")
		l.Physical.Region.Line = 1
		res.Locations = []sarifLocation{l}
		run.Results = append(run.Results, res)
	}
	return escape.JSON(w).Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// fingerprint identifies a cause from run to run: it depends on the code, what it is about and the programs, and not on lines or kernels.
func fingerprint(v *verdict.Report, c *verdict.Cause) string {
	h := sha256.New()
	subjects := []string{string(c.Code)}
	for i := range c.Subjects {
		subjects = append(subjects, subjectOf(&c.Subjects[i].Finding))
	}
	for _, s := range slices.Compact(subjects) {
		io.WriteString(h, strconv.Quote(s)+"\n")
	}
	for _, p := range c.Programs {
		io.WriteString(h, strconv.Quote(path.Base(v.Programs[p].Object))+" "+strconv.Quote(v.Programs[p].Name)+"\n")
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// noLinks escapes what is markup in SARIF's messages.
var noLinks = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`)

// location is file:line, or a file. What is below root is named from there on.
func location(source, root string) (l sarifLocation) {
	var u url.URL
	u.Path, l.Physical.Region.Line = place(source, root)
	if path.IsAbs(u.Path) {
		u.Scheme = "file"
	}
	l.Physical.Artifact.URI = u.String()
	return l
}

// place splits file:line, or a file, whose line is 0. What is below root is named from there on.
func place(source, root string) (file string, line int) {
	file = source
	if f, text, ok := cutLine(source); ok {
		if n, err := strconv.Atoi(text); err == nil && n > 0 {
			file, line = f, n
		}
	}
	file = path.Clean(file)
	if below, ok := strings.CutPrefix(file, strings.TrimSuffix(root, "/")+"/"); ok && root != "" {
		return below, line
	}
	return file, line
}
