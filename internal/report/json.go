package report

import (
	"encoding/json"
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
)

// JSON writes the report as [Read] reads it, with the causes in addition.
func JSON(w io.Writer, r *check.Report) error {
	return foreign.JSON(w).Encode(struct {
		*check.Report
		Causes []check.Cause `json:"causes"`
	}{r, r.Causes(check.Unknown)})
}

// Read reads a report that JSON wrote.
func Read(rd io.Reader) (*check.Report, error) {
	r := new(check.Report)
	if err := json.NewDecoder(rd).Decode(r); err != nil {
		return nil, err
	}
	return r, nil
}
