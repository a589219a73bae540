// SPDX-License-Identifier: Apache-2.0

// Package output puts files in their place. Whatever ends the program, kill -9 and a full disk
// included, a file is the old one or the new one, and errors call it by the name that the user gave.
//
// # One file
//
// [WriteFile] writes beside the file, in one named .btfgen.*.tmp, and renames that. What is replaced
// hands down its mode and, where the system allows that, its owner; a link stays, and what it leads to is
// replaced. Other names of the old file (hard links) keep the old content. Devices and pipes are
// written to as they are. Files and directories are synced before a function returns.
//
// # A directory
//
// [WriteDir] has all files in a directory .btfgen.*.tmp before it touches anything. A directory that was not there is
// that one, renamed: it appears whole. Into one that is there the files are moved one by one. Before that it is
// renamed to .btfgen.*.moving: from there on it is certain that all of them will get to their places. A run that is
// killed then leaves the rest to the next, which moves it first; until then [Moving] tells readers where
// it is. [Dir] is for files that come one after the other, each put in its place at once.
//
// What WriteDir wrote is one unit, of which a list lies in the directory ([ListName]). The next WriteDir there removes
// what the list has and it does not write, when all else is in its place and before the new list is, so that the next
// run can do it again. Only names in the list are ever removed or replaced; readers of the unit keep to it ([ReadList]).
//
// # Two runs
//
// Whoever reads an output and replaces it holds it from before the one until after the other ([Lock]). WriteDir does that by itself, since
// it reads the list.
//
// # What dead runs leave
//
// Whoever makes a .btfgen.* holds a lock on it (flock) as long as it lives. The next run that writes into
// a directory removes those that nobody holds. A lock rather than a process ID in the name, because
// it ends with the process whatever happens, is never taken for another's, and counts for
// containers that share a directory, whose process IDs mean nothing to each other. Where there are no locks, nothing is
// removed. Readers pass over names that begin with a dot.
package output
