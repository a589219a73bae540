// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/text/escape"
)

// JSON writes the report as check.ReadBaseline reads it, with the causes and what the run found in addition.
func JSON(w io.Writer, r *check.Report, findings any) error {
	return escape.JSON(w).Encode(struct {
		*check.Report
		Causes   []check.Cause `json:"causes"`
		Findings any           `json:"findings"`
	}{r, r.Causes(check.Unknown), findings})
}
