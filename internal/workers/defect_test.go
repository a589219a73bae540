// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
)

func TestCatch(t *testing.T) {
	l := new(Defects)
	ctx := WithDefects(context.Background(), l)
	if err := Catch(ctx, func() {}); err != nil || len(l.All()) != 0 {
		t.Errorf("%v, %d in the log", err, len(l.All()))
	}
	var index []int
	for _, c := range []struct {
		do   func()
		want string
	}{
		{func() { panic("trouble") }, "defect of btfgen: trouble"},
		{func() { panic(errors.New("wrong")) }, "defect of btfgen: wrong"},
		{func() { index[len(l.All())] = 1 }, "defect of btfgen: runtime error: index out of range [2] with length 0"},
	} {
		err := Catch(ctx, c.do)
		var e *Defect
		if !errors.As(err, &e) || e.Error() != c.want || !bytes.Contains(e.Stack, []byte("TestCatch")) {
			t.Errorf("%v, want %s", err, c.want)
		}
		if all := l.All(); all[len(all)-1] != e {
			t.Errorf("%s: not in the log", c.want)
		}
	}
	if err := Catch(context.Background(), func() { panic(1) }); err == nil || len(l.All()) != 3 {
		t.Errorf("%v, %d in a log of another context", err, len(l.All()))
	}
}

func TestLog(t *testing.T) {
	l := new(Defects)
	ctx := WithDefects(context.Background(), l)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { _ = Catch(ctx, func() { panic(i) }) })
	}
	wg.Wait()
	if n := len(l.All()); n != 10 {
		t.Errorf("%d of 10", n)
	}
}
