// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/pkg/relo"
)

// lines writes entries as lines of JSON. Most of a line is the result of the relocation on the kernel. Large objects ask few questions, each of them many
// times, so this is encoded once for all entries of a log that have it in common.
type lines struct {
	enc   *json.Encoder // writes to line
	line  bytes.Buffer
	begin beginning
	ends  map[ending][]byte
	bytes int // bytes of ends
	room  int // bytes that ends may have
}

// ending is the data of the end of a line. It points to values that entries share instead of copying them.
type ending struct {
	local      relo.Spec
	candidates *relo.Candidate // the first
	count      int             // number of candidates
	target     *relo.Spec
	old        uint64
	new        *uint64
	result     relo.Result
	reason     *relo.Reason
}

func endingOf(e *relo.Entry) ending {
	o := ending{e.Local, nil, len(e.Candidates), e.Target, e.Old, e.New, e.Result, e.Reason}
	if o.count > 0 {
		o.candidates = &e.Candidates[0]
	}
	return o
}

// endsRoom is how many bytes of ends are remembered: of a thousand where a kernel has hundreds of copies of a type.
const endsRoom = 64 << 20

func newLines() *lines {
	l := &lines{ends: make(map[ending][]byte), room: endsRoom}
	l.enc = escape.JSON(&l.line)
	return l
}

// forget makes l ready for another log.
func (l *lines) forget() {
	clear(l.ends)
	l.bytes = 0
}

// beginning is the fields of an entry that an ending does not have.
type beginning struct {
	Object  string    `json:"object"`
	Program string    `json:"program,omitempty"`
	Section string    `json:"section"`
	Index   int       `json:"index"`
	Insn    int       `json:"insn"`
	Source  string    `json:"source,omitempty"`
	Kind    relo.Kind `json:"kind"`
	Kernel  string    `json:"kernel"`
}

func (l *lines) write(w io.Writer, e *relo.Entry) error {
	o := endingOf(e)
	l.begin = beginning{e.Object, e.Program, e.Section, e.Index, e.Insn, e.Source, e.Kind, e.Kernel}
	begin, err := l.encode(&l.begin)
	if err != nil {
		return err
	}
	begin = bytes.TrimSuffix(begin, []byte("}\n"))
	if _, err := w.Write(begin); err != nil {
		return err
	}
	end, known := l.ends[o]
	if !known {
		size := len(begin)
		line, err := l.encode(e)
		if err != nil {
			return err
		}
		if l.bytes > l.room {
			l.forget()
		}
		end = bytes.Clone(line[size:])
		l.ends[o] = end
		l.bytes += len(end)
	}
	_, err = w.Write(end)
	return err
}

// encode returns v as a line, until the next call.
func (l *lines) encode(v any) ([]byte, error) {
	l.line.Reset()
	err := l.enc.Encode(v)
	return l.line.Bytes(), err
}
