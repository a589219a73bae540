package relolog

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// TestSignatureEnds takes the signature of a function that takes itself so often
// that to follow all parameters would take forever.
func TestSignatureEnds(t *testing.T) {
	b := rawbtf.NewBuilder(binary.LittleEndian)
	b.Type("", rawbtf.KindFuncProto, false, 60, 2)
	for range 60 {
		b.Word(0, 2)
	}
	b.Type("", rawbtf.KindPtr, false, 0, 1)
	v, err := rawbtf.New(b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := spec{btf: v}
	if sig := s.compatSignature(nil, 1, 0); len(sig) > 10*maxSignature {
		t.Errorf("signature of %d bytes", len(sig))
	}
}
