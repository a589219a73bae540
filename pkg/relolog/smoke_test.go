package relolog

import (
	"fmt"
	"os"
	"testing"
)

func TestSmoke(t *testing.T) {
	o := os.Getenv("OBJ")
	if o == "" {
		t.Skip()
	}
	d, _ := os.ReadFile(o)
	obj, err := ParseObject("x", d)
	if err != nil {
		t.Fatal(err)
	}
	k, _ := os.ReadFile(os.Getenv("BTF"))
	tg, err := NewTarget("k", k)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Run(obj, tg)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		fmt.Printf("%s/%s #%d insn %d %s %s [%d] %s %s (%s) %d", e.Section, e.Program, e.Index, e.Insn, e.Source, e.Kind, e.Local.TypeID, e.Local.Type, e.Local.Path, e.Local.Spec, e.Old)
		if e.New != nil {
			fmt.Printf("->%d", *e.New)
		}
		fmt.Println(" ", e.Result, e.Reason)
	}
}
