// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/btfgen/btfgen/pkg/relolog"
)

// Judge compares what loaders decide on one kernel with what they decide on any
// number of BTFs that were made of it: libbpf by its log, cilium/ebpf by its own
// code, neither by the columns that prove a minimized BTF. It is not safe for
// concurrent use.
type Judge struct {
	w      worker
	cilium *ciliumTarget
}

// NewJudge returns the Judge of a kernel without modules. The data must not
// change while it is in use.
func NewJudge(objects []Object, name string, btf []byte) (*Judge, error) {
	r := &run{Config: Config{Objects: objects}}
	r.read(context.Background())
	j := &Judge{w: worker{run: r, logs: make([]*relolog.Log, len(objects))}}
	if err := j.w.full.Load(context.Background(), name, btf); err != nil {
		return nil, err
	}
	var err error
	j.cilium, err = readCiliumTarget(context.Background(), &j.w.full, btf, nil)
	return j, err
}

// Compare returns the relocations that are decided differently. An error says
// that a loader cannot read the BTF, or that no object is of its byte order.
func (j *Judge) Compare(minimized []byte) ([]Difference, error) {
	k := Kernel{Name: j.w.full.Name()}
	small, err := j.w.load(context.Background(), minimized)
	if err == nil {
		err = j.w.fillTables(context.Background())
	}
	if err == nil {
		err = j.w.loaders(context.Background(), &k, j.cilium, small)
	}
	return k.Differences, err
}
