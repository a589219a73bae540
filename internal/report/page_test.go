// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"
)

// TestPage opens the page in a headless Chromium, filters, goes to a cell with
// the keyboard, and reads what it shows.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	const script = `<script>
const shown = () => [...document.querySelectorAll("#rows th")].map(e => e.firstChild.textContent.trim()).join(",");
const out = ["all " + shown()];
$("so").value = "1"; filter(); out.push("worst " + shown());
$("fk").value = "arm64"; $("fs").value = "4"; filter(); out.push("arm64 " + shown());
$("fk").value = "x86_64 6.1."; $("fs").value = "0"; $("fp").value = "Candidate brok"; filter(); out.push("found " + shown());
const cv = document.querySelector("canvas"); cv.focus(); cv.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
out.push("side " + $("side").textContent);
document.title = out.join(" | ");
</script>`
	title := chromiumTitle(t, strings.Replace(b.String(), "</html>", script+"</html>", 1))
	for _, want := range []string{
		"all broken,guard,&lt;fine&gt;,perhaps |", "worst broken,perhaps,guard,&lt;fine&gt; |",
		"arm64 perhaps |", "found broken |", "debian/12/x86_64/6.1.0-47-amd64: fails",
		"fails: relocation byte_off struct s.f: no | candidate (./x.bpf.c:12) ← here1 kernel",
	} {
		if !strings.Contains(title, want) {
			t.Errorf("the page does not show %q: %s", want, title)
		}
	}
}
