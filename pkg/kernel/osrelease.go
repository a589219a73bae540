// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxOSRelease limits what is read of an os-release file, in bytes.
const maxOSRelease = 1 << 20

// ParseOSRelease returns the variables in the text of an os-release file, such as
// "debian" for ID. Values may be bare or in single or double quotes, as in a shell,
// and the last assignment of a variable counts. Other lines are ignored.
func ParseOSRelease(text string) map[string]string {
	vars := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.Trim(line, " \t\n\v\f\r"), "=")
		if ok && isVariable(name) {
			vars[name] = unquote(value)
		}
	}
	return vars
}

func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && !('A' <= c && c <= 'Z') && !('a' <= c && c <= 'z') && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}

// unquote reads one shell word: pieces that are bare, in single quotes (taken
// as they are) or in double quotes (where a backslash hides the next character
// if that is special). A quote that is not closed ends with the line.
func unquote(s string) string {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote && quote != 0:
			quote = 0
		case quote == '\'':
			b.WriteByte(c)
		case c == '\\' && i+1 < len(s) && (quote == 0 || strings.IndexByte("\"\\$`", s[i+1]) >= 0):
			i++
			b.WriteByte(s[i])
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && (c == ' ' || c == '\t'): // what follows is another word
			return b.String()
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// osRelease reads the os-release file of the system under root. It returns nil
// if there is none.
func osRelease(root string) (map[string]string, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
		f, err := openUnder(r, name)
		if err != nil {
			continue
		}
		defer f.Close()
		return readOSRelease(f)
	}
	return nil, nil
}

// maxLinks is how many links a path may lead through, as in Linux.
const maxLinks = 40

var errLinks = errors.New("too many links")

// openUnder opens a file of the system under root. Links are followed as if root
// were "/", absolute ones as well: in a container they would else lead to the
// container's own files.
func openUnder(root *os.Root, name string) (*os.File, error) {
	done, todo := ".", name // done has no links
	for links := 0; todo != ""; {
		elem, rest, _ := strings.Cut(todo, "/")
		todo = rest
		switch elem {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		to, err := root.Readlink(filepath.FromSlash(path.Join(done, elem)))
		if err != nil { // no link, or not there, as opening it will tell
			done = path.Join(done, elem)
			continue
		}
		if links++; links > maxLinks {
			return nil, errLinks
		}
		if path.IsAbs(to) {
			done = "."
		}
		todo = to + "/" + rest
	}
	return root.Open(filepath.FromSlash(done))
}

var errTooLong = errors.New("too long for an os-release file")

func readOSRelease(r io.Reader) (map[string]string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxOSRelease+1))
	if err == nil && len(b) > maxOSRelease {
		err = errTooLong
	}
	return ParseOSRelease(string(b)), err
}
