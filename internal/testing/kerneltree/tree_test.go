// SPDX-License-Identifier: Apache-2.0

package kerneltree

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testinput"
)

func TestMain(m *testing.M) { testinput.Main(m) }

// tiny is a tree with little in it.
var tiny = map[string]string{
	"Makefile": "VERSION = 6\nPATCHLEVEL = 5\nSUBLEVEL = 4\n",
	"include/uapi/linux/bpf.h": `
enum bpf_prog_type { BPF_PROG_TYPE_UNSPEC, BPF_PROG_TYPE_XDP, BPF_PROG_TYPE_TRACING, };
enum bpf_attach_type { BPF_TRACE_FENTRY, BPF_TRACE_RAW_TP, BPF_XDP_DEVMAP, };
struct xdp_md { __u32 a; __u8 odd; __u32 :24; __u32 b[2]; union { __u32 c; __u8 d; }; __u32 :32; __bpf_md_ptr(struct bpf_sock *, sk); };
enum bpf_map_type { BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_SOCKMAP, };
#define __BPF_FUNC_MAPPER(FN) \
	FN(unspec), \
	FN(one, 1), \
	FN(two, 2), \
	FN(three, 3), \
	FN(four, 4),
`,
	"include/linux/bpf_types.h": `
#ifdef CONFIG_NET
BPF_PROG_TYPE(BPF_PROG_TYPE_XDP, xdp, struct a, struct b)
#endif
BPF_PROG_TYPE(BPF_PROG_TYPE_TRACING, tracing, void *,
	void *)
#if defined(CONFIG_NET)
#ifdef CONFIG_INET
BPF_MAP_TYPE(BPF_MAP_TYPE_SOCKMAP, sock_map_ops)
#endif
#endif
BPF_MAP_TYPE(BPF_MAP_TYPE_HASH, htab_map_ops)
`,
	"kernel/bpf/verifier.c": `
/* BPF_JMP32 in a comment is nothing */
struct bpf_thing { int first[3], second; struct { char inner:3; } x; };
static int check_map_func_compatibility(struct bpf_map *map, int func_id)
{
	switch (map->map_type) {
	case BPF_MAP_TYPE_SOCKMAP:
		if (func_id != BPF_FUNC_one && func_id != BPF_FUNC_two)
			goto error;
		break;
	default:
		break;
	}
	switch (func_id) {
	case BPF_FUNC_three: break;
	}
}
BTF_SET_START(btf_id_deny)
BTF_ID_UNUSED
BTF_ID(func, migrate_disable)
BTF_SET_END(btf_id_deny)
static bool brace(void) { return '{' != '}' && "}}}"; }
`,
	"kernel/bpf/helpers.c": `
const struct bpf_func_proto *
bpf_base_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	switch (func_id) {
	case BPF_FUNC_one:
		return &bpf_one_proto;
	default:
		break;
	}
	if (!bpf_token_capable(prog->aux->token, CAP_BPF))
		return NULL;
	switch (func_id) {
#ifdef CONFIG_X
	case BPF_FUNC_two:
		return security_locked_down(1) < 0 ? NULL : &bpf_two_proto;
#else
	case BPF_FUNC_three: return &never;
#endif
	default:
		return NULL;
	}
}
static const struct bpf_func_proto *tracing_func_proto(enum bpf_func_id func_id, const struct bpf_prog *prog)
{
	const struct bpf_func_proto *fn;

	switch (func_id) {
	case BPF_FUNC_three:
		return bpf_prog_has_trampoline(prog) ? &bpf_three_proto : NULL;
	case BPF_FUNC_four:
		if (prog->expected_attach_type != BPF_TRACE_RAW_TP)
			return NULL;
		return &bpf_four_proto;
	default:
		fn = bpf_base_func_proto(func_id, prog);
		if (!fn && prog->expected_attach_type == BPF_TRACE_ITER)
			fn = bpf_iter_get_func_proto(func_id, prog);
		return fn;
	}
}
const struct bpf_verifier_ops tracing_verifier_ops = { .get_func_proto = tracing_func_proto, };
static bool narrow_ok(u32 off, u32 size, u32 size_default) { return size <= size_default && (size & (size - 1)) == 0; }
static bool xdp_is_valid_access(int off, int size, enum bpf_access_type type, const struct bpf_prog *prog, struct bpf_insn_access_aux *info)
{
	const int size_default = sizeof(__u32);

	if (off < 0 || off >= sizeof(struct xdp_md) || off % size != 0)
		return false;
	switch (off) {
	case bpf_ctx_range(struct xdp_md, b):
		if (type == BPF_WRITE)
			goto never;
		return bpf_ctx_wide_access_ok(off, size, struct xdp_md, b) || narrow_ok(off, size, size_default);
	case offsetof(struct xdp_md, sk):
		info->reg_type = PTR_TO_SOCKET;
		return type == BPF_READ && size == sizeof_field(struct xdp_md, sk);
	case offsetof(struct xdp_md, c) ... offsetofend(struct xdp_md, c) - 1:
		break;
	default:
		if (prog->expected_attach_type != BPF_XDP_DEVMAP)
			return false;
	}
	return size == size_default;
never:
	return false;
}
const struct bpf_verifier_ops xdp_verifier_ops = { .get_func_proto	= bpf_base_func_proto, .is_valid_access = xdp_is_valid_access };
BTF_KFUNCS_START(some)
BTF_ID_FLAGS(func, bpf_do, KF_ACQUIRE | KF_SLEEPABLE)
BTF_ID_FLAGS(func, bpf_undo)
BTF_KFUNCS_END(some)
static int some_filter(const struct bpf_prog *prog, u32 kfunc_id)
{
	if (btf_id_set8_contains(&some, kfunc_id) && prog->type == BPF_PROG_TYPE_TRACING && prog->expected_attach_type != BPF_TRACE_RAW_TP)
		return -EACCES;
	return 0;
}
static const struct btf_kfunc_id_set some_set = { .owner = THIS_MODULE, .set = &some, .filter = some_filter };
static int __init init(void) { return register_btf_kfunc_id_set(BPF_PROG_TYPE_TRACING, &some_set); }
static int bpf_prog_type_to_kfunc_hook(enum bpf_prog_type prog_type)
{
	switch (prog_type) {
	case BPF_PROG_TYPE_TRACING:
	case BPF_PROG_TYPE_LSM:
		return BTF_KFUNC_HOOK_TRACING;
	}
}
BPF_CALL_1(bpf_called, int, x) { return 0; }
BTF_ID_LIST_SINGLE(bpf_sk_buff_ids, struct, sk_buff)
static int packet(int off, size_t *end)
{
	switch (off) {
	case offsetof(struct sk_buff, cb) + offsetof(struct qdisc_skb_cb, data[0]) ...
	     offsetof(struct sk_buff, cb) + offsetof(struct qdisc_skb_cb, data[QDISC_CB_PRIV_LEN - 1]):
		*end = offsetof(struct sk_buff, cb) + offsetofend(struct qdisc_skb_cb, data[QDISC_CB_PRIV_LEN - 1]);
		break;
	default:
		return -EACCES;
	}
	return 0;
}
static int ops_access(struct bpf_verifier_log *log, const struct bpf_reg_state *reg, int off, int size)
{
	const struct btf_type *t, *skbt;
	size_t end;
	int err;

	skbt = btf_type_by_id(reg->btf, bpf_sk_buff_ids[0]);
	t = btf_type_by_id(reg->btf, reg->btf_id);
	if (t == skbt) {
		err = packet(off, &end);
		if (err)
			return err;
		return off + size > end ? -EACCES : NOT_INIT;
	}
	if (t == task_struct_type)
		return off >= offsetof(struct task_struct, scx.slice) && off + size <= offsetofend(struct task_struct, scx.slice) ? SCALAR_VALUE : -EACCES;
	if (t != tcp_sock_type)
		return -EACCES;
	switch (off) {
	case offsetof(struct sock, rate):
		end = offsetofend(struct sock, rate);
		break;
	default:
		return -EACCES;
	}
	if (off + size > end)
		return -EACCES;
	return 0;
}
static const struct bpf_verifier_ops ops_verifier_ops = { .is_valid_access = xdp_is_valid_access, .btf_struct_access = ops_access };
static struct bpf_struct_ops bpf_some_ops = { .verifier_ops = &ops_verifier_ops, .name = "some_ops", };
static int state_access(struct bpf_verifier_log *log, const struct btf *btf, const struct btf_type *t, int off, int size, enum bpf_access_type atype, u32 *id)
{
	int err, type_id = btf_find_by_name_kind(btf, "bpf_dummy_ops_state", BTF_KIND_STRUCT);

	if (type_id < 0 || t != btf_type_by_id(btf, type_id))
		return -EACCES;
	err = btf_struct_access(log, btf, t, off, size, atype, id);
	return err < 0 || atype == BPF_READ ? err : NOT_INIT;
}
static const struct bpf_verifier_ops state_verifier_ops = { .btf_struct_access = state_access };
static struct bpf_struct_ops bpf_state_ops = { .verifier_ops = &state_verifier_ops, .name = "state_ops", };
static int table_access(struct bpf_verifier_log *log, const struct bpf_reg_state *reg, int off, int size)
{
#define WRITE_RANGE(_name, _field, _is_string) { .end = offsetofend(struct _name, _field) - !!(_is_string), }
	const struct range ranges[] = { WRITE_RANGE(hid_bpf_ctx, retval, false), WRITE_RANGE(hid_device, name, true), };
	return -EACCES;
}
static const struct bpf_verifier_ops table_verifier_ops = { .btf_struct_access = table_access };
static struct bpf_struct_ops bpf_table_ops = { .verifier_ops = &table_verifier_ops, .name = "table_ops", };
static const struct bpf_verifier_ops reading_verifier_ops = { .is_valid_access = xdp_is_valid_access };
static struct bpf_struct_ops bpf_reading_ops = { .verifier_ops = &reading_verifier_ops, .name = "reading_ops", };
`,
	"include/linux/lsm_hook_defs.h": "LSM_HOOK(int, 0, file_open, struct file *file)\nLSM_HOOK(void, LSM_RET_VOID,\n\ttask_free, struct task_struct *task)\n",
	"arch/x86/net/bpf_jit_comp.c":   "bool bpf_jit_supports_arena(void) { return true; }\n",
}

func writeTiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tiny {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRead reads a small tree.
func TestRead(t *testing.T) {
	dir := writeTiny(t)
	tree, err := Read(dir, []string{"bpf_thing", "bpf_thing.second", "bpf_thing.inner", "bpf_thing.third", "brace()", "bpf_called()", "init_called()", "bpf_map_type:BPF_MAP_TYPE_HASH", "bpf_func_id:BPF_FUNC_five"})
	if err != nil {
		t.Fatal(err)
	}
	if tree.Release != "6.5.4" || len(tree.Unknown) > 0 {
		t.Errorf("release %s, unknown %v", tree.Release, tree.Unknown)
	}
	for relation, want := range map[string]string{
		"helper XDP":                   "one two",
		"helper TRACING/TRACE_FENTRY":  "one three two",
		"helper TRACING/TRACE_RAW_TP":  "four one two",
		"helper TRACING/TRACE_ITER":    "",
		"with SOCKMAP":                 "one two",
		"with HASH":                    "",
		"set btf_id_deny":              "migrate_disable",
		"kfunc TRACING":                "bpf_do bpf_undo",
		"kfunc LSM":                    "bpf_do bpf_undo",
		"kfunc XDP":                    "",
		"refuses TRACING/TRACE_FENTRY": "bpf_do bpf_undo",
		"refuses TRACING/TRACE_RAW_TP": "",
		"refuses LSM":                  "",
		"size xdp_md":                  "32",
		"field xdp_md":                 "0 12 16 24 4 8",
		"reads XDP":                    "10/1 10/2 11/1 12/1 12/2 12/4 13/1 14/1 14/2 15/1 16/4 24/8 8/1 8/2 8/4 8/8 9/1",
		"writes XDP":                   "16/4",
		"reads XDP/XDP_DEVMAP":         "0/4 10/1 10/2 11/1 12/1 12/2 12/4 13/1 14/1 14/2 15/1 16/4 24/8 4/4 8/1 8/2 8/4 8/8 9/1",
		"sleeps":                       "bpf_do",
		"fields some_ops":              "none|sk_buff sk_buff.cb+qdisc_skb_cb.data..|task_struct task_struct.scx.slice..|tcp_sock sock.rate",
		"fields state_ops":             "bpf_dummy_ops_state bpf_dummy_ops_state|none",
		"fields table_ops":             "hid_bpf_ctx hid_bpf_ctx.retval..|hid_device hid_device.name..-1|none",
		"fields reading_ops":           "none",
		"hook":                         "file_open task_free",
		"jit x86_64":                   "supports_arena",
		"jit arm64":                    "",
		"map":                          "HASH|SOCKMAP CONFIG_NET CONFIG_INET",
		"program":                      "TRACING|XDP CONFIG_NET",
		"witness":                      "bpf_called()|bpf_map_type:BPF_MAP_TYPE_HASH|bpf_thing|bpf_thing.inner|bpf_thing.second|brace()",
	} {
		sep := " "
		if strings.Contains(want, "|") {
			sep = "|"
		}
		if got := strings.Join(slices.Sorted(maps.Keys(tree.Relations[relation])), sep); got != want {
			t.Errorf("%s: %q, want %q", relation, got, want)
		}
	}
	if tree.Relations["fact"]["instruction 32-bit jump"] || !tree.Relations["fact"]["map-type SOCKMAP"] {
		t.Errorf("facts %v", tree.Relations["fact"])
	}
	if _, err := Read(t.TempDir(), nil); err == nil {
		t.Error("an empty folder is a tree")
	}
}

// TestMatrix writes a matrix and reads it again, and checks that mistakes are refused.
func TestMatrix(t *testing.T) {
	trees := []*Tree{{Relations: Relations{"fact": {"a b": true, "c": true}}}, {Relations: Relations{"fact": {"a b": true}, "map": {"HASH": true}}}}
	m := New([]Column{{Name: "5.10.7", Release: "5.10.7", Sum: "12"}, {Name: "5.9", Release: "5.9", Vendor: "x", Sum: "34"}}, trees)
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(bytes.NewReader(b.Bytes()))
	if err != nil || !reflect.DeepEqual(got, m) || m.Columns[0].Name != "5.9" || !slices.Equal(m.Has["fact"]["c"], []bool{false, true}) {
		t.Errorf("%v: %+v, want %+v", err, got, m)
	}
	for _, bad := range []string{"+\ta\n", "[fact]\n+.\ta\n", "tree\ta\n"} {
		if _, err := Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}
