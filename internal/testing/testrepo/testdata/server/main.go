// SPDX-License-Identifier: Apache-2.0

// Server serves a repository of package testrepo over HTTP until its input ends. It is a program of its own, so that tests need not
// be linked with net/http.
//
//	server DIR STATE
//
// It prints its address. It appends the names of the packages that are downloaded to STATE/asked. Each line of STATE/answers is an answer
// for packages whose name has a part: "cut PART" sends half of them, "gone PART" nothing, and "stall PART" half, prints a line, and
// waits until the client gives up.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: server DIR STATE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	asked, err := os.OpenFile(filepath.Join(os.Args[2], "asked"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	go http.Serve(l, &server{dir: os.Args[1], state: os.Args[2], asked: asked, files: http.FileServer(http.Dir(os.Args[1]))})
	io.Copy(io.Discard, os.Stdin)
}

type server struct {
	dir, state string
	asked      *os.File
	files      http.Handler
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := filepath.Base(req.URL.Path)
	answer := ""
	if ext := filepath.Ext(name); ext == ".deb" || ext == ".rpm" {
		fmt.Fprintln(s.asked, name)
		answer = s.answer(name)
	}
	if answer == "" {
		s.files.ServeHTTP(w, req)
		return
	}
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if answer == "gone" || err != nil {
		http.NotFound(w, req)
		return
	}
	stall := answer == "stall"
	if stall {
		w.Header().Set("Content-Length", fmt.Sprint(len(data))) // clients compare it with the index
	}
	w.Write(data[:len(data)/2])
	if stall {
		w.(http.Flusher).Flush()
		fmt.Println(name)
		<-req.Context().Done()
	}
}

// answer returns the answer for a package, or "" if it is served whole.
func (s *server) answer(name string) string {
	lines, _ := os.ReadFile(filepath.Join(s.state, "answers"))
	for line := range strings.Lines(string(lines)) {
		if answer, part, _ := strings.Cut(strings.TrimSpace(line), " "); strings.Contains(name, part) {
			return answer
		}
	}
	return ""
}
