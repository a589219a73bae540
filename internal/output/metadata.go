// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Version control systems keep data beside the files that they manage, and run some of it: a hook or a setting in .git is a program. A
// checkout cannot bring such data along, so whoever wrote the checkout must not get a file there.

// metadata are the names of folders with data of version control systems.
var metadata = []string{".git", ".hg", ".svn", ".jj", ".bzr"}

// ignorable are the characters that HFS+ ignores in names, as in ".g\u200cit".
var ignorable = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x200c, Hi: 0x200f, Stride: 1}, {Lo: 0x202a, Hi: 0x202e, Stride: 1},
	{Lo: 0x206a, Hi: 0x206f, Stride: 1}, {Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
}}

// isMetadata reports whether Linux, macOS or Windows can take the name of a file or folder for one of metadata.
func isMetadata(name string) bool {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(ignorable, r) {
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")        // a stream of NTFS, as in .git::$INDEX_ALLOCATION
	name = strings.TrimRight(name, " .")       // Windows drops them
	short, number, _ := strings.Cut(name, "~") // a short name of FAT and NTFS, such as GIT~1
	isShort := number != "" && strings.Trim(number, "0123456789") == ""
	return slices.ContainsFunc(metadata, func(m string) bool {
		return strings.EqualFold(name, m) || isShort && strings.EqualFold("."+short, m)
	})
}

// checkMetadata returns an error if a name below a folder, or a place to which its links lead, is in the data of a version control system. The
// file need not exist.
func checkMetadata(root *os.Root, name string) error {
	for level := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		if isMetadata(level) {
			return fmt.Errorf("is in %s", level)
		}
	}
	levels, err := follow(root, name)
	if err != nil {
		return err
	}
	for i, level := range levels {
		at := filepath.Join(levels[:i+1]...)
		fi, err := root.Stat(at)
		if isMetadata(level) || err == nil && isSame(root, filepath.Dir(at), fi) {
			return fmt.Errorf("is in %s", level)
		}
		if err == nil && isGit(root, at) {
			return fmt.Errorf("is in %s, which has data of git", level)
		}
	}
	return nil
}

// isSame reports whether a file is the metadata of a folder by another name, which only the file system knows.
func isSame(root *os.Root, folder string, file fs.FileInfo) bool {
	return slices.ContainsFunc(metadata, func(m string) bool {
		fi, err := root.Stat(filepath.Join(folder, m))
		return err == nil && os.SameFile(fi, file)
	})
}

// isGit reports whether a folder has git's data, whatever its name is: of a repository without a checkout, or of one whose .git is a file.
func isGit(root *os.Root, folder string) bool {
	return !slices.ContainsFunc([]string{"HEAD", "objects", "refs"}, func(name string) bool {
		_, err := root.Stat(filepath.Join(folder, name))
		return err != nil
	})
}

// maxLinks bounds the links in a path, as Linux does.
const maxLinks = 40

// follow returns the levels of a name below a folder after links are followed, also one at the end. Levels that do not exist stay.
func follow(root *os.Root, name string) (done []string, err error) {
	split := func(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }
	left := split(name)
	for links := 0; len(left) > 0; {
		level := left[0]
		left = left[1:]
		switch {
		case level == "" || level == ".":
			continue
		case level == ".." && len(done) > 0:
			done = done[:len(done)-1]
			continue
		case level == "..":
			return nil, ErrOutside
		}
		done = append(done, level)
		to, err := root.Readlink(filepath.Join(done...))
		if err != nil {
			continue // not a link
		}
		if links++; links > maxLinks || filepath.IsAbs(to) {
			return nil, ErrOutside
		}
		done, left = done[:len(done)-1], append(split(to), left...)
	}
	return done, nil
}

// ErrOutside is the error of Inside for a path that leads out of the folder.
var ErrOutside = errors.New("is outside the folder")
