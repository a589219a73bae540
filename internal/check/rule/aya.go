// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// ayaSections are the sections of programs that aya 0.14 knows (ProgramSection::from_str in aya-obj's src/obj.rs), up to the first
// slash. If the part up to the next slash decides, too, it is one of those listed; "-" is none.
var ayaSections = func() map[string][]string {
	m := map[string][]string{
		"xdp": {"-", "cpumap", "devmap"}, "xdp.frags": {"-", "cpumap", "devmap"},
		"sk_skb": {"stream_parser", "stream_verdict"}, "cgroup_skb": {"ingress", "egress"},
		"sk_reuseport": {"-", "migrate"},
		"cgroup": strings.Fields("skb sysctl dev getsockopt setsockopt sock post_bind4 post_bind6 sock_create sock_release " +
			"bind4 bind6 connect4 connect6 getpeername4 getpeername6 getsockname4 getsockname6 " +
			"sendmsg4 sendmsg6 recvmsg4 recvmsg6"),
	}
	for name := range strings.FieldsSeq("kprobe kretprobe uprobe uprobe.s uretprobe uretprobe.s tp_btf tracepoint tp socket sk_msg " +
		"sockops classifier lirc_mode2 perf_event raw_tp raw_tracepoint lsm lsm.s lsm_cgroup fentry fentry.s fexit fexit.s " +
		"flow_dissector freplace sk_lookup iter iter.s") {
		m[name] = nil
	}
	return m
}()

// ayaOther are the beginnings of the names of other sections with code or data that aya reads (EbpfSectionKind::from_name).
var ayaOther = []string{"license", "version", "maps", ".maps", ".text", ".bss", ".data", ".rodata"}

// ayaReads reports whether aya accepts a section with code or data.
func ayaReads(section string) bool {
	if slices.ContainsFunc(ayaOther, func(p string) bool { return strings.HasPrefix(section, p) }) {
		return true
	}
	first, rest, more := strings.Cut(section, "/")
	second, _, _ := strings.Cut(rest, "/")
	if !more {
		second = "-"
	}
	list, ok := ayaSections[first]
	return ok && (list == nil || slices.Contains(list, second))
}

// ayaUnopened returns the reasons why aya 0.14 does not open the object, or may not. It refuses declarations of externs,
// since no section of the file has their name (Btf::fixup_and_sanitize in aya-obj's src/btf/btf.rs), and sections of
// programs and of data that it does not know (Object::parse, relocate_maps).
func (o *Object) ayaUnopened() (all []Finding) {
	add := func(f Finding) {
		if f.Loader = Aya; !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	section := func(name string) {
		if !ayaReads(name) {
			add(Finding{Status: Fails, Code: ObjectAya, Subject: o.name, Args: Args{Name: name}})
		}
	}
	for i := range o.Funcs {
		section(o.Funcs[i].Section)
	}
	switch {
	case strings.HasPrefix(o.Unread, "maps"):
		add(Finding{Status: Unknown, Code: ObjectAyaMaps, Subject: o.name, Args: Args{Name: o.Unread}})
	case o.Unread != "":
		section(o.Unread)
	}
	for i := range o.Externs {
		f := Finding{Status: Fails, Code: ObjectAyaExt, Subject: o.name, Args: Args{Name: ".ksyms"}}
		switch o.Externs[i].Kind {
		case bpfobj.ExternUndeclared:
			f = Finding{Status: Unknown, Code: KsymUndeclared, Subject: o.Externs[i].Name}
		case bpfobj.ExternKconfig:
			f.Name = ".kconfig"
		}
		add(f)
	}
	return all
}

// ayaRefusal returns the first record that aya refuses, in the object's order. It resolves those of all programs before it loads one,
// so that a refused record is no finding on the code of its program.
func (s *Scene) ayaRefusal() []Finding {
	for r := range s.decisions {
		if _, refused, reason := s.decisions.outcome(r); refused {
			f := s.o.records.finding(r, Fails, reason)
			f.Loader, f.Stops = Aya, s.loader.stops()
			return []Finding{f}
		}
	}
	return nil
}
