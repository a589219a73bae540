// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/kernel"
)

//go:embed page.html
var page string

// pageData is what the page shows. Verdicts are a string per row, a digit per
// kernel, which is a cell; sets of kernels, each once, are as ranges has them.
type pageData struct {
	Title       string        `json:"title"`
	Verdict     string        `json:"verdict"`
	VerdictCell cell          `json:"verdictCell"`
	Run         []string      `json:"run"` // version
	Command     string        `json:"command,omitempty"`
	Kernels     []string      `json:"kernels"`
	Required    []int         `json:"required,omitempty"` // kernels on which objects must work, if not all
	Families    []pageFamily  `json:"families"`           // sorted as in Kernels
	Cells       []pageCell    `json:"cells"`
	Sets        []string      `json:"sets"`
	Texts       []string      `json:"texts"` // the first is empty
	Matrix      pageMatrix    `json:"matrix"`
	Objects     []pageObject  `json:"objects"`
	Programs    []pageProgram `json:"programs"`
	Advice      []string      `json:"advice"`
	Causes      []pageCause   `json:"causes"` // each with an index of Advice

	column []int          // column of each kernel
	sets   map[string]int // indices of Sets
	texts  map[string]int // indices of Texts
}

// pageFamily are kernels of one distribution and machine.
type pageFamily struct {
	Name   string   `json:"n"`
	Series [][2]any `json:"s"` // names and numbers of kernels
}

type pageCell struct {
	Name string `json:"name"`
	Sign string `json:"sign"`
}

// pageMatrix is the matrix: executables, variants and objects.
type pageMatrix struct {
	Columns [][2]string `json:"c"` // machine and line
	Words   [][2]any    `json:"w"` // the different cells: a word and the cell whose colour it has
	Rows    []pageRow   `json:"r"`
	Legend  []string    `json:"l,omitempty"`
	Notes   []string    `json:"t,omitempty"`
}

type pageRow struct {
	Name    string `json:"n"`
	Object  int    `json:"o"` // or -1
	Cells   []int  `json:"c"` // indices of Words
	Minimum string `json:"m"`
}

type pageObject struct {
	Name    string        `json:"n"`
	Minimum string        `json:"h"`
	Cells   string        `json:"v"`
	Remarks []string      `json:"r,omitempty"`
	Decides []pageDecider `json:"d,omitempty"`
}

type pageDecider struct {
	Program int `json:"p"`
	Kernels int `json:"k"`
}

type pageProgram struct {
	Object   int           `json:"o"`
	Name     string        `json:"n"`
	Section  string        `json:"s"`
	Cells    string        `json:"v"`
	Findings []pageFinding `json:"f"`
	Notes    []string      `json:"t,omitempty"`
}

type pageFinding struct {
	Cell    cell `json:"c"`
	Text    int  `json:"x"`
	Source  int  `json:"l,omitempty"`
	Guard   int  `json:"g,omitempty"`
	Kernels int  `json:"k"`
}

type pageCause struct {
	Advice   int   `json:"d"`
	Cell     cell  `json:"c"`
	Text     int   `json:"x"`
	Where    int   `json:"w"`
	Kernels  int   `json:"k"`
	Programs []int `json:"p"`
}

// HTML writes the report as one self-contained page: what to do, and a map of programs and
// kernels that can be sorted, filtered, folded and opened to the reasons.
func HTML(w io.Writer, r *verdict.Report, o Options) error {
	d := pageData{Run: []string{"btfgen " + o.Version}, Command: escape.Text(o.Command),
		Sets: []string{}, Objects: []pageObject{}, Programs: []pageProgram{}, Advice: []string{}, Causes: []pageCause{},
		column: make([]int, len(r.Kernels)), sets: make(map[string]int), texts: make(map[string]int)}
	d.text("")
	for _, c := range cellTexts {
		d.Cells = append(d.Cells, pageCell{c.name, string(c.sign)})
	}
	v := order(r)
	s := summarize(r, o)
	d.Title = "btfgen check: " + s.counted()
	d.Verdict, d.VerdictCell = s.word()
	d.kernels(v)
	full := make([]int, 0, len(r.Kernels)) // indices of the required kernels
	for k := range r.Kernels {
		if o.Required == nil || o.Required(k) {
			full = append(full, k)
		}
	}
	if o.Required != nil {
		for i, k := range v.ordered {
			if o.Required(k) {
				d.Required = append(d.Required, i)
			}
		}
	}
	d.matrix(s)
	d.objects(v, s)
	d.programs(v, r)
	d.causes(s, full)
	var data bytes.Buffer
	if err := json.NewEncoder(&data).Encode(d); err != nil { // escapes <, > and &
		return err
	}
	head, tail, _ := strings.Cut(page, "/*DATA*/null")
	b := bufio.NewWriter(w)
	b.WriteString(head)
	b.Write(bytes.TrimSpace(data.Bytes()))
	b.WriteString(tail)
	return b.Flush()
}

// matrix adds the matrix, with what else there is to know.
func (d *pageData) matrix(s *summary) {
	m := newMatrix(s.Report, false, true)
	d.Matrix = pageMatrix{Columns: [][2]string{}, Words: [][2]any{}, Rows: []pageRow{}}
	words := make(map[[2]any]int)
	for _, c := range m.columns {
		d.Matrix.Columns = append(d.Matrix.Columns, [2]string{escape.Text(c.machine), escape.Text(c.name)})
	}
	for _, l := range m.legend {
		d.Matrix.Legend = append(d.Matrix.Legend, escape.Text(l))
	}
	for _, text := range slices.Concat(s.unloaded(), s.remarks(false)) {
		d.Matrix.Notes = append(d.Matrix.Notes, escape.Text(text))
	}
	for i := range m.rows {
		minimum := escape.Text(minimaText(s.Report, m.rows[i].of))
		x := pageRow{Name: escape.Text(m.rows[i].name), Object: m.rows[i].object, Cells: []int{}, Minimum: minimum}
		for _, c := range m.rows[i].cells {
			w := [2]any{word(c), signOf(c)}
			n, ok := words[w]
			if !ok {
				n = len(d.Matrix.Words)
				words[w], d.Matrix.Words = n, append(d.Matrix.Words, w)
			}
			x.Cells = append(x.Cells, n)
		}
		d.Matrix.Rows = append(d.Matrix.Rows, x)
	}
}

// causes adds causes, by what to do about them. full has the indices of the kernels that they are about.
func (d *pageData) causes(s *summary, full []int) {
	at := make(map[string]int)
	for _, c := range slices.Concat(s.Causes, s.Warnings) {
		kernels := make([]int, len(c.Kernels))
		for i, k := range c.Kernels {
			kernels[i] = full[k]
		}
		x := pageCause{intern(&d.Advice, at, escape.Text(advice(&c, false))), cellOfFinding(c.Status, c.Attach), 0, 0, d.set(kernels), c.Programs}
		x.Text, x.Where = d.text(withLoader(c.Loader, causeSubject(&c, mostNames)+" ["+string(c.Code)+"]")), d.text(where(s.Report, &c))
		d.Causes = append(d.Causes, x)
	}
}

// withLoader marks what counts for one loader only.
func withLoader(l rule.Loader, text string) string {
	if l == "" {
		return text
	}
	return "with " + string(l) + ": " + text
}

// row returns the cells of a row, a character for each kernel.
func (d *pageData) row(v *view, cells []cell) string {
	b := make([]byte, len(v.ordered))
	for i, k := range v.ordered {
		b[i] = '0' + byte(cells[k])
	}
	return string(b)
}

// objects adds objects, with the verdicts on all kernels.
func (d *pageData) objects(v *view, s *summary) {
	for i := range v.Objects {
		x := &v.Objects[i]
		out := pageObject{Name: escape.Text(x.Object), Minimum: escape.Text(minimaText(s.Report, &s.Objects[i])), Cells: d.row(v, cells(x.Status, x.Load))}
		for j := range x.Rules {
			out.Remarks = append(out.Remarks, escape.Text(ruleText(v.Report, &x.Rules[j])))
		}
		for _, dec := range x.Decides {
			out.Decides = append(out.Decides, pageDecider{dec.Program, d.set(dec.Kernels)})
		}
		d.Objects = append(d.Objects, out)
	}
}

// programs adds programs.
func (d *pageData) programs(v *view, r *verdict.Report) {
	object := make([]int, len(r.Programs))
	for i := range r.Objects {
		for _, p := range r.Objects[i].Programs {
			object[p] = i
		}
	}
	for i := range r.Programs {
		p := &r.Programs[i]
		out := pageProgram{
			Object: object[i], Name: escape.Text(p.Name), Section: escape.Text(p.Section),
			Cells: d.row(v, cells(p.Status, p.Load)), Findings: []pageFinding{},
		}
		seen := make(map[pageFinding]bool)
		for _, f := range p.Findings {
			x := pageFinding{
				cellOfFinding(f.Status, f.Attach), d.text(withLoader(f.Loader, Sentence(&f.Finding))),
				d.text(f.Source), d.text(guardText(&f.Finding)), d.set(f.Kernels),
			}
			// Several relocations of one field have equal findings.
			if !seen[x] {
				seen[x] = true
				out.Findings = append(out.Findings, x)
			}
		}
		for i := range p.Notes {
			out.Notes = append(out.Notes, escape.Text(note(&p.Notes[i])))
		}
		d.Programs = append(d.Programs, out)
	}
}

// firstFamilies are the kernels that readers look for first, in this order.
var firstFamilies = []string{"debian x86_64", "ubuntu x86_64", "rhel x86_64"}

// view is a report whose kernels are in an order in which neighbours are similar.
type view struct {
	*verdict.Report
	ordered []int // indices of Kernels
}

// order orders kernels by distribution, machine and release. Those that readers look for are first.
func order(r *verdict.Report) *view {
	v := &view{r, make([]int, len(r.Kernels))}
	keys, ranks := make([]kernel.Key, len(r.Kernels)), make([]int, len(r.Kernels))
	for i := range r.Kernels {
		keys[i], v.ordered[i] = r.Kernels[i].Key().Canonical(), i
		if ranks[i] = slices.Index(firstFamilies, r.Kernels[i].Family()); ranks[i] < 0 {
			ranks[i] = len(firstFamilies)
		}
	}
	slices.SortStableFunc(v.ordered, func(x, y int) int {
		a, b := keys[x], keys[y]
		return cmp.Or(ranks[x]-ranks[y], cmp.Compare(a.ID, b.ID), cmp.Compare(a.Arch, b.Arch),
			kernel.CompareVersions(a.Release, b.Release), kernel.CompareVersions(a.VersionID, b.VersionID))
	})
	return v
}

// kernels sets the names, order and families of kernels.
func (d *pageData) kernels(v *view) {
	last := ""
	for i, k := range v.ordered {
		x := &v.Kernels[k]
		d.column[k] = i
		d.Kernels = append(d.Kernels, escape.Text(x.Name))
		f := x.Family()
		if i == 0 || f != v.Kernels[v.ordered[i-1]].Family() {
			d.Families = append(d.Families, pageFamily{Name: escape.Text(f)})
			last = ""
		}
		of := &d.Families[len(d.Families)-1]
		if s := strings.ReplaceAll(x.Key().Series().Release, "-", " "); s == last && s != "" {
			of.Series[len(of.Series)-1][1] = of.Series[len(of.Series)-1][1].(int) + 1
		} else {
			of.Series = append(of.Series, [2]any{escape.Text(s), 1})
			last = s
		}
	}
}

// set returns the number of a set of kernels in Sets.
func (d *pageData) set(kernels []int) int { return intern(&d.Sets, d.sets, ranges(kernels, d.column)) }

// text returns the number of a text in Texts.
func (d *pageData) text(s string) int { return intern(&d.Texts, d.texts, escape.Text(s)) }

// intern returns the index of s in a list, and adds it if it is missing.
func intern(list *[]string, at map[string]int, s string) int {
	n, ok := at[s]
	if !ok {
		n = len(*list)
		at[s] = n
		*list = append(*list, s)
	}
	return n
}

// ranges writes a set of kernels as ranges of their columns: how many are left out
// since the last one, and "+" how many follow the first. 1, 2, 3 and 7 are "1+2,3".
func ranges(set []int, column []int) string {
	in := make([]bool, len(column)+1)
	for _, k := range set {
		in[column[k]] = true
	}
	var parts []string
	end := 0
	for i := 0; i < len(column); i++ {
		if !in[i] {
			continue
		}
		first := i
		for in[i+1] {
			i++
		}
		s := strconv.Itoa(first - end)
		if i > first {
			s += "+" + strconv.Itoa(i-first)
		}
		parts = append(parts, s)
		end = i + 1
	}
	return strings.Join(parts, ",")
}
