package report

import (
	"encoding/json"
	"io"

	"github.com/btfgen/btfgen/internal/check"
)

// JSON writes the report as check.ReadBaseline reads it, with the causes in addition.
func JSON(w io.Writer, r *check.Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(struct {
		*check.Report
		Causes []check.Cause `json:"causes"`
	}{r, r.Causes(check.Unknown)})
}
