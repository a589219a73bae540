// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strconv"
)

// Places in the initial RAM file system.
const (
	initPath    = "init"
	jobPath     = "job.json"
	configPath  = "config"
	objectsPath = "objects"
	modulesPath = "modules"
	typesPath   = "types"
	btfPath     = "btf"
	archivePath = "archive"
	workPath    = "work" // directory in which a command runs
)

// File is a file that a command needs.
type File struct {
	Name string // name without a directory
	Data []byte
}

// writeInitramfs writes an initial RAM file system in the newc format of
// Documentation/driver-api/early-userspace/buffer-format.rst. The output is deterministic.
func writeInitramfs(w io.Writer, m *Machine) error {
	j := m.Job
	j.Objects, j.Modules, j.Types = len(m.Objects), len(m.Modules), len(m.Types)
	j.BTF, j.Archive = m.BTF != nil, m.Archive != nil
	job, err := json.Marshal(j)
	if err != nil {
		return err
	}
	a := &newc{w: bufio.NewWriter(w)}
	// The kernel opens /dev/console for process 1 before anything is mounted.
	for _, dir := range []string{"dev", "proc", "sys", "tmp", "boot", objectsPath, modulesPath, typesPath, workPath} {
		a.add(dir, modeDir|0o755, 0, nil)
	}
	a.add("dev/console", modeChar|0o600, 5<<8|1, nil)
	a.add(initPath, modeFile|0o755, 0, m.Init)
	a.add(jobPath, modeFile|0o644, 0, job)
	for _, f := range []File{{configPath, m.Config}, {btfPath, m.BTF}, {archivePath, m.Archive}} {
		if f.Data != nil {
			a.add(f.Name, modeFile|0o644, 0, f.Data)
		}
	}
	a.numbered(objectsPath, m.Objects)
	a.numbered(modulesPath, m.Modules)
	a.numbered(typesPath, m.Types)
	for _, f := range m.Files {
		a.add(path.Join(workPath, f.Name), modeFile|0o755, 0, f.Data)
	}
	return a.close()
}

// Modes of files.
const (
	modeFile = 0o100000
	modeDir  = 0o040000
	modeChar = 0o020000
)

// newc writes an archive. After an error it writes no more, and close returns the error.
type newc struct {
	w   *bufio.Writer
	n   uint32 // number of files so far
	err error
}

// add adds a file; device is major<<8 | minor.
func (a *newc) add(name string, mode, device uint32, data []byte) {
	if int64(len(data)) > 1<<32-1 {
		a.err = fmt.Errorf("%s: larger than 4 GiB", name)
	}
	if a.err != nil {
		return
	}
	a.n++
	const links = 1
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.n, mode, 0, 0, links, 0, len(data), 0, 0, device>>8, device&0xff, len(name)+1, 0, name)
	for _, part := range [][]byte{[]byte(header), data} {
		a.w.Write(part)
		_, a.err = a.w.Write(make([]byte, -len(part)&3)) // bufio.Writer keeps its first error
	}
}

// numbered adds files named by their numbers.
func (a *newc) numbered(dir string, files [][]byte) {
	for i, data := range files {
		a.add(path.Join(dir, strconv.Itoa(i)), modeFile|0o644, 0, data)
	}
}

func (a *newc) close() error {
	a.add("TRAILER!!!", 0, 0, nil)
	return cmp.Or(a.err, a.w.Flush())
}
