// SPDX-License-Identifier: Apache-2.0

// Btfgen-registry moves files between a folder and a registry of OCI artifacts, for 'btfgen corpus push' and 'pull':
//
//	btfgen-registry manifest [--plain-http] REGISTRY/NAME:TAG
//	btfgen-registry get [--plain-http] REGISTRY/NAME:TAG DIR DIGEST...
//	btfgen-registry put [--plain-http] REGISTRY/NAME:TAG DIR
//
// It is a program of its own because an HTTP client is a quarter of the size of btfgen. It prints lines of JSON, which [artifact.Event]
// describes. Credentials come from Docker's configuration, proxies from the environment.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
)

// version is set by the linker.
var version string

const usage = `usage: btfgen-registry manifest [--plain-http] REFERENCE
       btfgen-registry get [--plain-http] REFERENCE DIR DIGEST...
       btfgen-registry put [--plain-http] REFERENCE DIR

'btfgen corpus push' and 'btfgen corpus pull' run this program.

  manifest  print the manifest of an artifact
  get       download blobs of an artifact to DIR
  put       push the artifact with the manifest DIR/manifest.json
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Fprintln(stdout, "btfgen-registry", versionText())
		return 0
	}
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		fmt.Fprint(stderr, usage)
		return 2
	}
	flags := flag.NewFlagSet("btfgen-registry", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage) }
	plain := flags.Bool("plain-http", false, "use HTTP instead of HTTPS")
	if flags.Parse(args[1:]) != nil {
		return 2
	}
	words := flags.Args()
	out := &printer{enc: json.NewEncoder(stdout)}
	var err error
	switch name := args[0]; {
	case name == "manifest" && len(words) == 1:
		err = printManifest(ctx, out, words[0], *plain)
	case name == "get" && len(words) >= 2:
		err = get(ctx, out, words[0], *plain, words[1], words[2:])
	case name == "put" && len(words) == 2:
		err = put(ctx, out, words[0], *plain, words[1])
	default:
		flags.Usage()
		return 2
	}
	if err != nil {
		kind, message := classify(err)
		if args[0] == "put" && kind == artifact.Unknown {
			kind, message = artifact.Failed, message+"; some registries want the repository to be created first"
		}
		if err := configured(); kind == artifact.Denied && err != nil {
			message += "; no configuration of Docker: $DOCKER_CONFIG is not defined, and " + err.Error()
		}
		out.print(&artifact.Event{Error: kind, Message: message})
		return 1
	}
	return 0
}

// versionText returns the version that the linker or the Go command wrote.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

// printer prints events.
type printer struct {
	mu  sync.Mutex
	enc *json.Encoder

	done, size int64 // bytes of all blobs
}

func (p *printer) print(e *artifact.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enc.Encode(e) // btfgen may have ended
}

// add adds to the bytes that are done.
func (p *printer) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
}

// watch prints how many bytes are done, several times a second, until stop is called.
func (p *printer) watch() (stop func()) {
	end := make(chan bool)
	var watching sync.WaitGroup
	show := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.size > 0 {
			p.enc.Encode(&artifact.Event{Done: p.done, Size: p.size})
		}
	}
	watching.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				show()
				return
			case <-tick.C:
				show()
			}
		}
	})
	return func() {
		close(end)
		watching.Wait()
	}
}
