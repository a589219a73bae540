package report

import (
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/foreign"
)

// JSON writes the report as check.ReadBaseline reads it, with the causes in addition.
func JSON(w io.Writer, r *check.Report) error {
	return foreign.JSON(w).Encode(struct {
		*check.Report
		Causes []check.Cause `json:"causes"`
	}{r, r.Causes(check.Unknown)})
}
