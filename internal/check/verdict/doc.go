// SPDX-License-Identifier: Apache-2.0

// Package verdict makes a [Report] of findings: what those on programs mean for
// objects, executables and their users.
//
// [Setup.Judge] gets a report with a row for each program. An [ObjectRow] combines
// the programs of an object as its loader does, by a [Policy] or by guesses. An
// executable with several objects needs all of them; of
// [Report.Variants] the loader takes one.
//
// For example, an object with a fentry program that fails on 4.19 and a kprobe
// program for the same function that works is guessed to need one of the two, and
// works there. Without the guess it fails, and a [Suggestion] says which option
// would say so.
//
// [Report.Summarize] makes the matrix that all formats show: a [Cell] for each object
// and [Line] of kernels, a [Minimum] for each object and machine, and each [Cause]. No
// format derives anything else from verdicts.
//
// [ReadBaseline] and [Report.Compare] find what is worse than in an earlier report.
package verdict
