// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// seriesSize is what a series takes in corpora in one file.
type seriesSize struct {
	Series  string `json:"series"`
	Kernels int    `json:"kernels"`
	Plain   int    `json:"kept_as_bytes"` // kernels
	BTF     int64  `json:"btf_bytes"`     // of the kernels, not of modules
	Packed  int64  `json:"bytes"`         // with modules
}

// streamSize is what one sort of thing takes in an archive, or in corpora in one file.
type streamSize struct {
	Name   string `json:"name"`
	Plain  int    `json:"bytes"`
	Packed int    `json:"bytes_packed_alone"`
}

// listCorpusSizes lists what the bytes of corpora in one file are spent on: by series, and by what they say.
func listCorpusSizes(c *cli.Context, corp *corpus.Corpus) error {
	sizer, err := btfc.NewMaker()
	if err != nil {
		return err
	}
	var series []seriesSize
	var streams []streamSize
	last := kernel.Key{}
	files := slices.SortedStableFunc(slices.Values(corp.Files), func(a, b *corpus.File) int { return a.Key.Compare(b.Key) })
	for _, f := range files {
		packed, i := f.Packed()
		if packed == nil {
			return usagef("%s: --sizes is for corpora in one file", f.Path)
		}
		e := &packed.Entries()[i]
		if s := e.Key.Series(); s != last || len(series) == 0 {
			last = s
			series = append(series, seriesSize{Series: s.String()})
		}
		at := &series[len(series)-1]
		at.Kernels++
		at.BTF += e.Size
		at.Packed += e.Packed()
		if e.Plain {
			at.Plain++
		}
		sizes, err := sizer.Sizes(c.Context, packed, i)
		if err != nil {
			return err
		}
		for _, s := range sizes {
			j := slices.IndexFunc(streams, func(t streamSize) bool { return t.Name == s.Name })
			if j < 0 {
				j = len(streams)
				streams = append(streams, streamSize{Name: s.Name})
			}
			streams[j].Plain += s.Plain
			streams[j].Packed += s.Packed
		}
	}
	if c.Bool("json") {
		return document(c, struct {
			Series  []seriesSize `json:"series"`
			Streams []streamSize `json:"streams"`
			allFindings
		}{series, streams, findingsOf(c)})
	}
	tw := tabwriter.NewWriter(c.App.Writer, 2, 8, 2, ' ', 0)
	escape.Fprintf(tw, "SERIES\tKERNELS\tBTF\tPACKED\tKEPT AS BYTES\n")
	for _, s := range series {
		escape.Fprintf(tw, "%s\t%d\t%s\t%s\t%d\n", s.Series, s.Kernels, words.Bytes(s.BTF), words.Bytes(s.Packed), s.Plain)
	}
	escape.Fprintf(tw, "\nWHAT\tPLAIN\tPACKED ALONE\n")
	for _, s := range streams {
		escape.Fprintf(tw, "%s\t%s\t%s\n", s.Name, words.Bytes(int64(s.Plain)), words.Bytes(int64(s.Packed)))
	}
	return tw.Flush()
}
