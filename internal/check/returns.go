// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// bounds are the numbers from lo to hi.
type bounds struct{ lo, hi int64 }

// String says which they are.
func (s bounds) String() string {
	switch s {
	case bounds{s.lo, s.lo}:
		return strconv.FormatInt(s.lo, 10)
	case bounds{s.lo, s.lo + 1}:
		return fmt.Sprintf("%d or %d", s.lo, s.hi)
	}
	return fmt.Sprintf("%d to %d", s.lo, s.hi)
}

// lsmRange is a function of kernels whose verifier looks at what programs of LSM return.
const lsmRange = "bpf_lsm_get_retval_range"

// yesOrNo are the hooks of LSM that return a boolean: the set bool_lsm_hooks in kernel/bpf/bpf_lsm.c.
var yesOrNo = map[string]bool{"xfrm_state_pol_flow_match": true, "audit_rule_known": true, "inode_xattr_skipcap": true}

// returns says what a program may return, nil where that is not known or it may return anything:
// check_return_code in kernel/bpf/verifier.c. Where releases differ it is what any of them takes. That
// of fentry and fexit is asked since Linux 5.7, and of recvmsg since 5.3; the type of programs for LSM
// came in 5.7.
func (e *evaluation) returns() *bounds {
	s := e.pr.Attach
	if s == nil || e.k.lacks(enumProg, "BPF_PROG_TYPE_LSM") || e.k.enums[enumProg] == nil {
		return nil
	}
	one, two := &bounds{0, 0}, &bounds{0, 1}
	switch s.ProgType {
	case "CGROUP_SOCK", "CGROUP_DEVICE", "CGROUP_SYSCTL", "CGROUP_SOCKOPT", "SOCK_OPS", "SK_LOOKUP", "NETFILTER":
		return two
	case "CGROUP_SKB":
		if s.Type == "BPF_CGROUP_INET_EGRESS" {
			return &bounds{0, 3}
		}
		return two
	case "CGROUP_SOCK_ADDR":
		switch {
		case strings.Contains(s.Type, "RECVMSG"), strings.Contains(s.Type, "GETPEERNAME"), strings.Contains(s.Type, "GETSOCKNAME"):
			return &bounds{1, 1}
		case strings.HasSuffix(s.Type, "_BIND"):
			return &bounds{0, 3} // since 5.12; before 0 or 1
		}
		return two
	case "TRACING":
		switch s.Type {
		case "BPF_TRACE_FENTRY", "BPF_TRACE_FEXIT":
			return one
		case "BPF_TRACE_ITER":
			return two
		}
	case "KPROBE":
		if strings.HasSuffix(s.Type, "_SESSION") {
			return two
		}
	case "LSM":
		return e.hookReturns(s)
	}
	return nil
}

// hookReturns is returns for programs of LSM.
func (e *evaluation) hookReturns(s *bpfobj.Section) *bounds {
	if s.Type == "BPF_LSM_CGROUP" {
		return &bounds{0, 1}
	}
	_, asked := e.k.find(lsmRange, btf.KindFunc)
	if e.hook == nil || !asked && e.k.has(hookReturns) != present {
		return nil
	}
	switch name := strings.TrimPrefix(e.hook.name, "bpf_lsm_"); {
	case e.hook.proto.Ref() == 0:
		return nil
	case yesOrNo[name]:
		return &bounds{0, 1}
	}
	const most = 4095 // MAX_ERRNO
	return &bounds{-most, 0}
}

// judgeReturns judges what a program returns. A way through the program that the verifier may know not to be
// one is a doubt, unless all end alike.
func (e *evaluation) judgeReturns(r *exploration, may *bounds) {
	all := r.returns()
	whole := !r.GaveUp && r.Odd == interp.NothingOdd
	var bad *interp.Return
	for i := range all {
		switch x := &all[i]; {
		case !may.excludes(x.Min, x.Max):
			whole = false
		case bad == nil || x.Level < bad.Level:
			bad = x
		}
	}
	if bad == nil {
		return
	}
	b := numbers(bad.Min, bad.Max)
	f := Finding{
		Status: Fails, Code: ReturnRange, Subject: b.String(), Args: Args{Name: e.pr.Attach.Prefix, Offset: may.lo, Max: may.hi}, Source: e.o.Source(bad.At),
	}
	if !whole {
		f.Status = MayFail
		switch bad.Level {
		case interp.Certain:
			f.Reach = UnlessKnown
		case interp.Depends:
			f.Reach = BySettings
		default:
			e.doubted = true
			f.Reach = TooManyPaths
		}
	}
	e.note(f)
}

// numbers are bounds of what a register has as people write them: the half of a negative number is one.
func numbers(lo, hi uint64) bounds {
	if lo > math.MaxInt32 && hi <= math.MaxUint32 {
		return bounds{int64(int32(lo)), int64(int32(hi))}
	}
	return bounds{int64(lo), int64(hi)}
}

// excludes reports that none of the numbers from lo to hi, which are those of a register, is within these, whether
// the whole register counts or its lower half.
func (s *bounds) excludes(lo, hi uint64) bool {
	out := func(lo, hi int64) bool { return lo <= hi && (hi < s.lo || s.hi < lo) }
	return hi-lo <= math.MaxInt32 && out(int64(lo), int64(hi)) && out(int64(int32(lo)), int64(int32(hi)))
}
