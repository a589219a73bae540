// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"testing"

	"github.com/btfgen/btfgen/internal/workers/program"
)

// TestOtherKey has messages of apt-get 2.6 and 2.9 about a repository that is signed with keys that apt was not given.
func TestOtherKey(t *testing.T) {
	const repository = "E: The repository 'http://deb.debian.org/debian-security bookworm-security InRelease' "
	const unsigned, signed = repository + "is not signed.", "apt-get: " + repository + "is signed with another key, "
	for _, tt := range []struct{ said, want string }{
		{"W: GPG error: http://deb.debian.org/debian-security bookworm-security InRelease: The following signatures couldn't be verified because the public key is not available: " +
			"NO_PUBKEY 54404762BBB6E853 NO_PUBKEY BDE6D2B9216EC7A8\n" + unsigned,
			signed + "54404762BBB6E853 or BDE6D2B9216EC7A8, which is not in a.gpg or b.gpg"},
		{"W: OpenPGP signature verification failed: http://x InRelease: Missing key 54404762BBB6E853, which is needed to verify signature.\n" + unsigned,
			signed + "54404762BBB6E853, which is not in a.gpg or b.gpg"},
		{unsigned, "apt-get: " + unsigned},
		{"W: NO_PUBKEY \x1b[2J\n" + unsigned, "apt-get: " + unsigned},
	} {
		err := otherKey(&program.Error{Name: "apt-get", Said: tt.said, Err: errors.New(unsigned)}, []string{"a.gpg", "b.gpg"})
		if err.Error() != tt.want {
			t.Errorf("%s\nwant\n%s", err, tt.want)
		}
	}
	if err := errors.New("x"); otherKey(err, nil) != err {
		t.Error("another error changes")
	}
}
