package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/logtext"
	"github.com/btfgen/btfgen/internal/pool"
	"github.com/btfgen/btfgen/pkg/relolog"
)

func relologCommand() *cli.Command {
	return &cli.Command{
		Name:      "relolog",
		Usage:     "show how each relocation is decided, and why",
		ArgsUsage: "OBJECT...",
		Description: "Resolves the relocations of objects as libbpf would, without loading anything, and writes one line for each.\n" +
			"Of several kernels it shows first what differs between them. Patterns are those of a shell. The exit status\n" +
			"is 3 if what is shown has a poisoned, ambiguous or failed relocation, or if a kernel or object was skipped.",
		Flags: append(sourceFlags(),
			&cli.BoolFlag{Name: "json", Usage: "write one line of JSON per relocation and kernel, as docs/relolog.md has it"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show source lines, candidates and reasons"},
			&cli.StringSliceFlag{Name: "program", Usage: "only relocations in functions or sections that match `PATTERN`"},
			&cli.StringSliceFlag{Name: "result", Usage: "only those with `RESULT` resolved, absent, poisoned, ambiguous or error"},
			&cli.StringSliceFlag{Name: "type", Usage: "only those of local types that match `PATTERN`"},
			&cli.StringFlag{Name: "color", Usage: "colour results: `WHEN` auto (on a terminal, unless NO_COLOR is set), always or never", Value: "auto"},
			&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Usage: "work on `N` objects at once", Value: runtime.GOMAXPROCS(0), DefaultText: "number of CPUs"},
		),
		Action: runRelolog,
	}
}

func runRelolog(c *cli.Context) error {
	opts, err := logOptions(c)
	if err != nil {
		return err
	}
	stderr := c.App.ErrWriter
	objs, err := readObjects(c.Args().Slice(), stderr)
	if err != nil {
		return err
	}
	corp, err := openCorpus(c, false)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(c.App.Writer)
	l := &logger{Context: c, opts: opts, objs: objs.list, met: make([]bool, len(objs.list)), out: out, bad: objs.bad}
	switch {
	case c.Bool("json"):
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		l.write = func(log *relolog.Log) error { return l.json(enc, log) }
	default:
		l.write = l.text
	}
	if err := l.run(corp); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if l.bad > 0 || l.findings {
		return errFindings
	}
	return nil
}

func logOptions(c *cli.Context) (o logtext.Options, err error) {
	o.Verbose = c.Bool("verbose")
	o.Filter = logtext.Filter{Programs: c.StringSlice("program"), Types: c.StringSlice("type")}
	if err := o.Filter.Check(); err != nil {
		return o, usageError{err}
	}
	for _, r := range c.StringSlice("result") {
		if !slices.Contains(logtext.Results, relolog.Result(r)) {
			return o, usagef("--result %q: want resolved, absent, poisoned, ambiguous or error", r)
		}
		o.Filter.Results = append(o.Filter.Results, relolog.Result(r))
	}
	if c.Bool("json") && (o.Verbose || c.IsSet("color")) {
		return o, usagef("--json does not go with --verbose or --color")
	}
	if c.Int("jobs") < 1 {
		return o, usagef("--jobs %d: want at least 1", c.Int("jobs"))
	}
	o.Color, err = colored(c)
	return o, err
}

// colored decides whether standard output gets colour.
func colored(c *cli.Context) (bool, error) {
	switch when := c.String("color"); when {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return isTerminal(c.App.Writer) && os.Getenv("NO_COLOR") == "", nil
	default:
		return false, usagef("--color %q: want auto, always or never", when)
	}
}

// logger makes the logs of all objects on all kernels, in this order: kernels
// as in the corpus, objects as given.
type logger struct {
	*cli.Context
	opts  logtext.Options
	objs  []*relolog.Object
	met   []bool // the object has met a kernel of its byte order
	out   *bufio.Writer
	write func(*relolog.Log) error

	pending  []*relolog.Log // the first kernel's, until it is known to be the only one
	first    string         // name of the first kernel
	compare  *logtext.Comparison
	bad      int  // kernels and objects left out
	findings bool // among what is shown
}

func (l *logger) run(corp *corpus.Corpus) error {
	l.skip(corp.Skipped...)
	var scratch corpus.Scratch
	for _, f := range corp.Files {
		var failed error
		err := f.Read(l.Context.Context, &scratch, func(k *corpus.Kernel) error {
			failed = l.kernel(k)
			return failed
		})
		if failed != nil || l.Context.Context.Err() != nil {
			return err
		}
		l.skip(corpus.Errors(err)...)
	}
	for i, met := range l.met {
		if !met {
			l.skip(&corpus.Error{Path: l.objs[i].Name(), Err: errors.New("no kernel is of its byte order")})
		}
	}
	return l.finish()
}

func (l *logger) skip(skipped ...*corpus.Error) {
	l.bad += len(skipped)
	reportSkipped(l.App.ErrWriter, skipped)
}

// kernel runs all objects on one kernel, on several CPUs.
func (l *logger) kernel(k *corpus.Kernel) error {
	target := new(relolog.Target)
	if err := k.Load(target, k.Name); err != nil {
		l.skip(&corpus.Error{Path: k.Name, Err: err})
		return nil
	}
	logs := make([]*relolog.Log, len(l.objs))
	err := pool.Each(l.Context.Context, l.Int("jobs"), len(l.objs), func(i int) error {
		log, err := relolog.Run(l.Context.Context, l.objs[i], target)
		if errors.Is(err, relolog.ErrByteOrder) {
			return nil
		}
		logs[i] = log
		return err
	})
	switch {
	case l.Context.Context.Err() != nil:
		return l.Context.Context.Err()
	case err != nil:
		l.skip(&corpus.Error{Path: k.Name, Err: err})
		return nil
	}
	met := false
	for i, log := range logs {
		if log == nil {
			continue
		}
		met, l.met[i] = true, true
		l.note(log)
		if err := l.write(log); err != nil {
			return err
		}
	}
	if !met {
		l.skip(&corpus.Error{Path: k.Name, Err: errors.New("no object is of its byte order")})
	}
	return nil
}

// note looks for findings among the entries that are shown.
func (l *logger) note(log *relolog.Log) {
	for i := range log.Entries {
		switch e := &log.Entries[i]; e.Result {
		case relolog.Poisoned, relolog.Ambiguous, relolog.Error:
			l.findings = l.findings || l.opts.Filter.Match(e)
		}
	}
}

func (l *logger) json(enc *json.Encoder, log *relolog.Log) error {
	for i := range log.Entries {
		if e := &log.Entries[i]; l.opts.Filter.Match(e) {
			if err := enc.Encode(e); err != nil {
				return err
			}
		}
	}
	return l.out.Flush()
}

// text keeps the logs of the first kernel, and compares from the second on.
func (l *logger) text(log *relolog.Log) error {
	if l.compare == nil && (l.first == "" || l.first == log.Kernel) {
		l.first = log.Kernel
		l.pending = append(l.pending, log)
		return nil
	}
	if l.compare == nil {
		l.compare = new(logtext.Comparison)
		for _, p := range l.pending {
			l.compare.Add(p)
		}
		l.pending = nil
	}
	l.compare.Add(log)
	return nil
}

func (l *logger) finish() error {
	if l.compare != nil {
		return l.compare.Write(l.out, l.opts)
	}
	for _, log := range l.pending {
		if err := logtext.Write(l.out, log, l.opts); err != nil {
			return err
		}
	}
	return nil
}
