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
	enc   *json.Encoder // to line
	line  bytes.Buffer
	ends  map[ending][]byte
	bytes int // of ends
	room  int // for these
}

// ending is what the end of a line is about. It has pointers to what entries share, rather than what these point to.
type ending struct {
	local      relo.Spec
	candidates *relo.Candidate // the first
	count      int             // of these
	target     *relo.Spec
	old        uint64
	new        *uint64
	result     relo.Result
	reason     *relo.Reason
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

// theEnd is what the end of a line begins with. Nothing in front of it has these bytes: in a string quotes are escaped.
var theEnd = []byte(`,"local":{`)

func (l *lines) write(w io.Writer, e *relo.Entry) error {
	o := ending{e.Local, nil, len(e.Candidates), e.Target, e.Old, e.New, e.Result, e.Reason}
	if o.count > 0 {
		o.candidates = &e.Candidates[0]
	}
	end, known := l.ends[o]
	if known {
		begin := *e
		begin.Local, begin.Candidates, begin.Target, begin.New, begin.Reason = relo.Spec{}, nil, nil, nil, nil
		e = &begin
	}
	l.line.Reset()
	if err := l.enc.Encode(e); err != nil {
		return err
	}
	line := l.line.Bytes()
	if at := bytes.Index(line, theEnd); known {
		line = line[:at]
	} else {
		if l.bytes > l.room {
			l.forget()
		}
		l.ends[o] = bytes.Clone(line[at:])
		l.bytes += len(line) - at
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	_, err := w.Write(end)
	return err
}
