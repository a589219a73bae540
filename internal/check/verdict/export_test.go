// SPDX-License-Identifier: Apache-2.0

package verdict

// Summarize makes the headline of a row.
func (r *Report) Summarize(row *ObjectRow) { row.Headline = r.axis().headline(row) }
